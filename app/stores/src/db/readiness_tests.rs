//! Trial writes with real files that are removed, replaced and full.

use std::io::ErrorKind;
use std::path::Path;

use deerflow_core::actor_context::Owner;
use deerflow_core::ids::ThreadId;
use deerflow_core::tasks::Tasks;
use deerflow_runtime::runs::store::{
    AdmitError, RunCreateStore, RunEventStore, RunQueryStore, StoreError,
};
use deerflow_runtime::testkit::{event, new_run};

use super::*;
use crate::db::error::DbFailure;
use crate::{DatabaseConfig, JsonlRunEventStore, SqlRunStore};

async fn open(directory: &Path, tasks: &Tasks) -> Database {
    Database::open(&DatabaseConfig::Sqlite(directory.to_owned()), tasks)
        .await
        .unwrap()
}

async fn probe(db: &Database) -> Result<(), NotReady> {
    DatabaseReadiness::new(db.clone(), "node-1").probe().await
}

fn refusal(admitted: Result<impl std::fmt::Debug, AdmitError>) -> String {
    match admitted {
        Err(AdmitError::Store(StoreError::Unavailable(reason))) => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn trial_write_leaves_no_data() {
    for config in [
        DatabaseConfig::Memory,
        DatabaseConfig::Sqlite(tempfile::tempdir().unwrap().keep()),
    ] {
        let db = Database::open(&config, &Tasks::new()).await.unwrap();
        for full in [false, true] {
            db.writes().set_was_full(full);
            assert_eq!(probe(&db).await, Ok(()));
            assert!(!db.writes().was_full());
        }
        let count = "SELECT (SELECT COUNT(*) FROM nodes) + (SELECT COUNT(*) FROM sqlite_schema WHERE name LIKE 'probe%')";
        let row = db
            .reads()
            .query_one_raw(Statement::from_string(DbBackend::Sqlite, count))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(row.try_get_by_index::<i64>(0).unwrap(), 0);
        if let DatabaseConfig::Sqlite(directory) = config {
            std::fs::remove_dir_all(directory).unwrap();
        }
    }
}

#[tokio::test]
async fn write_to_removed_database_fails() {
    for (name, file) in [
        ("deerflow.db", StoredFile::Database),
        ("deerflow.db-wal", StoredFile::DatabaseLog),
        ("deerflow.db-shm", StoredFile::DatabaseIndex),
        ("deerflow.lock", StoredFile::Lock),
    ] {
        let (directory, tasks) = (tempfile::tempdir().unwrap(), Tasks::new());
        let db = open(directory.path(), &tasks).await;
        let runs = SqlRunStore::new(db.clone());
        runs.admit(new_run("r1", "t1")).await.unwrap();
        let (at, elsewhere) = (
            directory.path().join(name),
            directory.path().join("elsewhere"),
        );
        std::fs::rename(&at, &elsewhere).unwrap();
        assert_eq!(
            refusal(runs.admit(new_run("r2", "t2")).await),
            format!("{file} was removed")
        );
        assert_eq!(probe(&db).await, Err(NotReady::Removed(file)));
        assert!(!at.exists(), "{name} is not created again");
        std::fs::copy(&elsewhere, &at).unwrap();
        assert_eq!(
            refusal(runs.admit(new_run("r2", "t2")).await),
            format!("{file} was replaced")
        );
        assert_eq!(probe(&db).await, Err(NotReady::Replaced(file)));
        std::fs::rename(&elsewhere, &at).unwrap();
        assert_eq!(probe(&db).await, Ok(()));
        runs.admit(new_run("r2", "t2")).await.unwrap();
        assert_eq!(
            runs.standing(None, &Owner::None).await.unwrap().len(),
            2,
            "{name}"
        );
    }
}

#[tokio::test]
async fn commit_to_file_removed_meanwhile_fails() {
    let (directory, tasks) = (tempfile::tempdir().unwrap(), Tasks::new());
    let db = open(directory.path(), &tasks).await;
    // Removed between the check before the transaction and the check after it.
    let remove: crate::db::tx::Work<std::path::PathBuf, (), StoreError> = |tx, file| {
        Box::pin(async move {
            std::fs::remove_file(file).unwrap();
            tx.execute_unprepared("DELETE FROM nodes").await?;
            Ok(())
        })
    };
    let written = db
        .writes()
        .run(directory.path().join("deerflow.db"), remove)
        .await;
    assert_eq!(
        written,
        Err(StoreError::Unavailable(
            "database file was removed".to_owned()
        ))
    );
}

#[tokio::test]
async fn full_database_is_not_ready_until_space_is_free() {
    let (directory, tasks) = (tempfile::tempdir().unwrap(), Tasks::new());
    let db = open(directory.path(), &tasks).await;
    let limit: crate::db::tx::Work<&'static str, (), StoreError> = |tx, pages| {
        Box::pin(async move {
            tx.execute_unprepared(&format!("PRAGMA max_page_count = {pages}"))
                .await?;
            Ok(())
        })
    };
    db.writes().run("1", limit).await.unwrap();
    // The limit is one of this connection, so the filling write uses no prepared statements.
    let fill: crate::db::tx::Work<(), (), StoreError> = |tx, ()| {
        Box::pin(async move {
            tx.execute_unprepared("CREATE TABLE filler AS SELECT randomblob(1048576) AS bytes")
                .await?;
            Ok(())
        })
    };
    let refused = db.writes().run((), fill).await;
    assert!(
        matches!(refused, Err(StoreError::NotWritable(_))),
        "{refused:?}"
    );
    assert_eq!(probe(&db).await, Err(NotReady::DiskFull));
    db.writes().run("4294967294", limit).await.unwrap();
    assert_eq!(probe(&db).await, Ok(()));
}

#[tokio::test]
async fn folder_probe_reports_reason() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("data");
    std::fs::create_dir(&folder).unwrap();
    let probe = FolderReadiness::new("data_folder", StoredFile::DataFolder, folder.clone());
    assert_eq!(probe.probe().await, Ok(()));
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    std::fs::remove_dir(&folder).unwrap();
    assert_eq!(
        probe.probe().await,
        Err(NotReady::Removed(StoredFile::DataFolder))
    );
    for (kind, expected) in [
        (ErrorKind::StorageFull, NotReady::DiskFull),
        (ErrorKind::QuotaExceeded, NotReady::DiskFull),
        (
            ErrorKind::ReadOnlyFilesystem,
            NotReady::FolderNotWritable(StoredFile::DataFolder),
        ),
        (ErrorKind::Other, NotReady::WriteFailed),
    ] {
        assert_eq!(
            reason(StoredFile::DataFolder, &folder, &kind.into()),
            expected
        );
    }
}

#[tokio::test]
async fn journal_append_to_removed_file_fails() {
    let directory = tempfile::tempdir().unwrap();
    let journal = JsonlRunEventStore::open(directory.path()).unwrap();
    let append = async || journal.append(vec![event("t1", "r1", "text")]).await;
    assert_eq!(append().await, Ok(vec![1]));
    let (file, elsewhere) = (
        directory.path().join("t1.jsonl"),
        directory.path().join("elsewhere"),
    );
    std::fs::rename(&file, &elsewhere).unwrap();
    assert_eq!(
        append().await,
        Err(StoreError::Unavailable(
            "journal file was removed".to_owned()
        ))
    );
    assert!(!file.exists());
    std::fs::rename(&elsewhere, &file).unwrap();
    assert_eq!(append().await, Ok(vec![2]));

    let readiness = journal.readiness();
    assert_eq!(readiness.probe().await, Ok(()));
    std::fs::remove_file(directory.path().join("deerflow.lock")).unwrap();
    assert_eq!(
        readiness.probe().await,
        Err(NotReady::Removed(StoredFile::Lock))
    );
    assert_eq!(
        append().await,
        Err(StoreError::Unavailable("lock file was removed".to_owned()))
    );
    std::fs::remove_dir_all(directory.path()).unwrap();
    assert_eq!(
        readiness.probe().await,
        Err(NotReady::Removed(StoredFile::JournalFolder))
    );
    journal
        .delete_thread(&ThreadId::parse("t1").unwrap())
        .await
        .unwrap_err();
}

mod postgres_tests {
    use super::*;
    use crate::SessionLockTimeouts;
    use crate::db::scratch_schema;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "needs DEERFLOW_TEST_POSTGRES_URL; make test-external runs it"]
    async fn read_only_server_is_not_ready() {
        const SCHEMA: &str = "deerflow_readiness";
        scratch_schema::delete(SCHEMA).await;
        let config = scratch_schema::settings(SCHEMA);
        let db = Database::open_postgres(&config, SessionLockTimeouts::default())
            .await
            .unwrap();
        for full in [false, true] {
            db.writes().set_was_full(full);
            assert_eq!(probe(&db).await, Ok(()));
            assert!(!db.writes().was_full());
        }
        let set = async |value: &str| {
            let sql = format!("SET SESSION CHARACTERISTICS AS TRANSACTION {value}");
            db.reads().execute_unprepared(&sql).await.unwrap();
        };
        set("READ ONLY").await;
        let refused = SqlRunStore::new(db.clone())
            .admit(new_run("r1", "t1"))
            .await;
        assert!(refusal(refused).contains("read-only"));
        assert_eq!(probe(&db).await, Err(NotReady::DatabaseReadOnly));
        set("READ WRITE").await;
        assert_eq!(probe(&db).await, Ok(()));
        let full = db.writes().run((), |_, ()| {
            Box::pin(async { Err(TxError::Db(DbFailure::Full("no space".to_owned()))) })
        });
        assert_eq!(
            full.await,
            Err::<(), _>(StoreError::NotWritable("no space".to_owned()))
        );
        assert!(DatabaseReadiness::new(db.clone(), "node-1").is_short_of_space());
        assert_eq!(probe(&db).await, Ok(()));
        assert!(!db.writes().is_low());
    }
}
