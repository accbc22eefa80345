//! Tests of the read-only probe of a database.

use deerflow_core::tasks::Tasks;

use super::*;
use crate::db::migration::progress::MigrationProgress;

fn entries(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn probe_reports_state_without_changes() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("data");
    let config = DatabaseConfig::Sqlite(directory.clone());
    assert_eq!(
        Database::probe(&config).await,
        Ok(Probe {
            schema: Schema::Missing,
            in_use: false,
            migration: None
        })
    );
    assert!(!directory.exists());

    let tasks = Tasks::new();
    let db = Database::open(&config, &tasks).await.unwrap();
    assert_eq!(
        Database::probe(&config).await,
        Ok(Probe {
            schema: Schema::Current,
            in_use: true,
            migration: None
        })
    );
    db.ping().await.unwrap();
    drop(db);
    tasks.shut_down().await;

    assert_eq!(
        Database::probe(&config).await.map(|probe| probe.schema),
        Ok(Schema::Current)
    );
    drop(Database::open(&config, &Tasks::new()).await.unwrap());
}

#[tokio::test]
async fn probe_of_unused_file_creates_no_other_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(DATABASE_FILE);
    let options = sqlite_options()
        .filename(&file)
        .create_if_missing(true)
        .journal_mode(sqlx::sqlite::SqliteJournalMode::Wal);
    let pool = sqlite_pool(1).connect_with(options).await.unwrap();
    let db = SqlxSqliteConnector::from_sqlx_sqlite_pool(pool);
    crate::db::migration::migrate(&db, &|_| ()).await.unwrap();
    db.execute_unprepared(&format!(
        "DELETE FROM {APPLIED} WHERE version NOT LIKE 'm0001%'"
    ))
    .await
    .unwrap();
    db.close().await.unwrap();
    let (before, bytes) = (entries(directory.path()), std::fs::read(&file).unwrap());
    let probe = Database::probe(&DatabaseConfig::Sqlite(directory.path().to_owned()))
        .await
        .unwrap();
    assert!(matches!(probe.schema, Schema::Older { version } if version.starts_with("m0001")));
    assert_eq!(
        (entries(directory.path()), std::fs::read(&file).unwrap()),
        (before, bytes)
    );
}

#[tokio::test]
async fn migration_of_an_existing_database_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let config = DatabaseConfig::Sqlite(directory.path().to_owned());
    let tasks = Tasks::new();
    let reports = parking_lot::Mutex::new(Vec::new());
    let on_migration = |progress: &MigrationProgress| {
        let file = ProgressFile::read(directory.path());
        reports.lock().push((progress.clone(), file));
    };
    let created = Database::open_with_reserve(&config, 0, &tasks, &on_migration).await;
    drop(created.unwrap());
    assert!(reports.lock().is_empty());
    tasks.shut_down().await;

    let repeated = "m0043_run_index_order";
    let file = rusqlite::Connection::open(directory.path().join(DATABASE_FILE)).unwrap();
    let sql = format!("DELETE FROM {APPLIED} WHERE version = ?1");
    assert_eq!(file.execute(&sql, [repeated]).unwrap(), 1);
    drop(file);
    let tasks = Tasks::new();
    let opened = Database::open_with_reserve(&config, 0, &tasks, &on_migration).await;
    drop(opened.unwrap());
    let progress = MigrationProgress {
        done: 0,
        total: 1,
        step: repeated.to_owned(),
    };
    let text = progress.to_string();
    assert_eq!(*reports.lock(), [(progress, Some(text))]);
    assert_eq!(ProgressFile::read(directory.path()), None);
}

#[tokio::test]
async fn probe_of_unreadable_database_fails() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(
        directory.path().join(DATABASE_FILE),
        b"no database at all, but long enough to be one".repeat(40),
    )
    .unwrap();
    let damaged = Database::probe(&DatabaseConfig::Sqlite(directory.path().to_owned())).await;
    assert!(
        matches!(damaged, Err(OpenError::Damaged { .. })),
        "{damaged:?}"
    );
    let below_a_file = Database::probe(&DatabaseConfig::Sqlite(
        directory.path().join(DATABASE_FILE),
    ))
    .await;
    assert!(
        matches!(below_a_file, Err(OpenError::Directory { .. })),
        "{below_a_file:?}"
    );
    assert_eq!(
        compare(&["m9".to_owned()], &["m1".to_owned()]),
        Schema::Newer {
            version: "m9".to_owned()
        }
    );
}
