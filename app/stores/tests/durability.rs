//! Durability over restarts, errors at startup, and growth of the database file.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use std::path::Path;

use deerflow_core::actor_context::Owner;
use deerflow_core::ids::SeededIds;
use deerflow_core::state::{StateUpdate, ThreadState};
use deerflow_core::tasks::Tasks;
use deerflow_runtime::checkpoint::Checkpointer;
use deerflow_runtime::runs::RunStatus;
use deerflow_runtime::runs::store::{
    RunCommit, RunCommitStore, RunCreateStore, RunEventStore, RunQueryStore,
};
use deerflow_runtime::testkit::{
    all_events, at_once, checkpoint_write, commit_of, end_in, event, message, new_run, run, thread,
};
use deerflow_stores::{
    Database, DatabaseConfig, OpenError, PostgresConfig, SqlCheckpointer, SqlRunEventStore,
    SqlRunStore,
};
use sqlx::Connection;
use sqlx::sqlite::SqliteConnectOptions;

async fn try_open(directory: &Path, tasks: &Tasks) -> Result<Database, OpenError> {
    Database::open(&DatabaseConfig::Sqlite(directory.to_owned()), tasks).await
}

async fn open(directory: &Path, tasks: &Tasks) -> Database {
    try_open(directory, tasks).await.unwrap()
}

#[tokio::test]
async fn only_its_owner_reads_a_new_database() {
    use std::os::unix::fs::MetadataExt;
    let directory = tempfile::tempdir().unwrap();
    let tasks = Tasks::new();
    let db = open(directory.path(), &tasks).await;
    for name in ["deerflow.db", "deerflow.db-wal", "deerflow.db-shm"] {
        let mode = std::fs::metadata(directory.path().join(name))
            .unwrap()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    drop(db);
    tasks.shut_down().await;
}

#[tokio::test]
async fn reopened_file_has_all_acknowledged_writes() {
    let directory = tempfile::tempdir().unwrap();
    let nested = directory.path().join("made/when/missing");
    let (mut state, mut tail) = (ThreadState::default(), 0);
    state
        .apply(
            StateUpdate::messages([message("m1", "hello")]),
            &SeededIds::new(1),
        )
        .unwrap();
    let tasks = Tasks::new();
    let db = open(&nested, &tasks).await;
    let runs = SqlRunStore::new(db.clone());
    let admitted = runs.admit(new_run("r1", "t1")).await.unwrap().run;
    let commit = RunCommit {
        events: vec![event("t1", "r1", "a")],
        checkpoints: vec![checkpoint_write("t1", Some("r1"), 1, &mut state, &mut tail)],
        end: Some(end_in(RunStatus::Error)),
        ..commit_of(&admitted)
    };
    runs.commit(commit.into()).await.unwrap();
    drop((runs, db));
    tasks.shut_down().await;

    let tasks = Tasks::new();
    let db = open(&nested, &tasks).await;
    let ended = SqlRunStore::new(db.clone())
        .get(&run("r1"), &Owner::None)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(ended.status, RunStatus::Error);
    assert_eq!(
        SqlRunEventStore::new(db.clone())
            .list(&thread("t1"), &all_events(), &Owner::None)
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        SqlCheckpointer::new(db.clone())
            .get(&thread("t1"), None)
            .await
            .unwrap()
            .unwrap()
            .state,
        state
    );
    assert_eq!(
        SqlRunEventStore::new(db)
            .append(vec![event("t1", "r2", "b")])
            .await,
        Ok(vec![2])
    );
}

#[tokio::test]
async fn directory_is_locked_until_closed() {
    let directory = tempfile::tempdir().unwrap();
    let tasks = Tasks::new();
    let db = open(directory.path(), &tasks).await;
    let second = try_open(directory.path(), &Tasks::new()).await.unwrap_err();
    assert_eq!(
        second,
        OpenError::InUse {
            directory: directory.path().to_owned()
        }
    );
    assert!(
        second
            .to_string()
            .contains(&directory.path().display().to_string())
    );
    drop(db);
    tasks.shut_down().await;
    open(directory.path(), &Tasks::new()).await;
}

#[tokio::test]
async fn damaged_file_is_rejected_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("deerflow.db");
    let tasks = Tasks::new();
    let db = open(directory.path(), &tasks).await;
    for n in 0..200 {
        SqlRunStore::new(db.clone())
            .admit(new_run(&format!("r{n}"), &format!("t{n}")))
            .await
            .unwrap();
    }
    drop(db);
    tasks.shut_down().await;
    let healthy = {
        // Writes the whole WAL back to the file.
        let mut direct = sqlx::SqliteConnection::connect(&format!("sqlite://{}", file.display()))
            .await
            .unwrap();
        sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)")
            .execute(&mut direct)
            .await
            .unwrap();
        direct.close().await.unwrap();
        std::fs::read(&file).unwrap()
    };
    let mut torn_page = healthy.clone();
    torn_page[4096 * 3..4096 * 4].fill(0x5a);
    for bad in [
        b"this is no database, but long enough to be taken for one".repeat(40),
        torn_page,
    ] {
        let fresh = tempfile::tempdir().unwrap();
        let file = fresh.path().join("deerflow.db");
        std::fs::write(&file, bad).unwrap();
        let error = try_open(fresh.path(), &Tasks::new()).await.unwrap_err();
        assert!(
            matches!(&error, OpenError::Damaged { file: named, .. } if *named == file),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn uncreatable_directory_is_reported_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = try_open(&file.join("below"), &Tasks::new())
        .await
        .unwrap_err();
    assert!(matches!(error, OpenError::Directory { .. }), "{error:?}");
}

#[tokio::test]
async fn unreachable_server_is_reported_without_password() {
    for url in [
        "postgres://ann:hunter2@127.0.0.1:1/none",
        "postgres://ann:hunter2@[bad",
        "mysql://ann:hunter2@host",
    ] {
        let config = PostgresConfig {
            url: url.into(),
            schema: None,
            max_connections: 2,
            exclusive: false,
        };
        assert!(!format!("{config:?}").contains("hunter2"));
        let error = Database::open(&DatabaseConfig::Postgres(config), &Tasks::new())
            .await
            .unwrap_err();
        assert!(
            !format!("{error} {error:?}").contains("hunter2"),
            "{error:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_do_not_wait_for_the_writer() {
    let directory = tempfile::tempdir().unwrap();
    let tasks = Tasks::new();
    let runs = SqlRunStore::new(open(directory.path(), &tasks).await);
    runs.admit(new_run("r", "t")).await.unwrap();
    let (writer, reader) = (runs.clone(), runs);
    let results = at_once((0..200).map(|n| {
        let (writer, reader) = (writer.clone(), reader.clone());
        async move {
            if n % 2 == 0 {
                writer
                    .admit(new_run(&format!("r{n}"), &format!("t{n}")))
                    .await
                    .is_ok()
            } else {
                reader
                    .get(&run("r"), &Owner::None)
                    .await
                    .is_ok_and(|run| run.is_some())
            }
        }
    }))
    .await;
    assert!(results.into_iter().all(|ok| ok));
}

/// Returns the size of the file after the WAL is written back, in bytes.
async fn size(directory: &Path) -> i64 {
    let options = SqliteConnectOptions::new().filename(directory.join("deerflow.db"));
    let mut reader = sqlx::SqliteConnection::connect_with(&options)
        .await
        .unwrap();
    let pages: i64 = sqlx::query_scalar("PRAGMA page_count")
        .fetch_one(&mut reader)
        .await
        .unwrap();
    reader.close().await.unwrap();
    pages * 4096
}

/// Measures the growth per turn: 2,000 turns must stay below 64 MiB. Only a fifth of them is run,
/// and the second half must not cost more per turn than the first.
#[tokio::test]
async fn database_grows_linearly_with_turns() {
    const TURNS: u64 = 400;
    let directory = tempfile::tempdir().unwrap();
    let tasks = Tasks::new();
    let runs = SqlRunStore::new(open(directory.path(), &tasks).await);
    let ids = SeededIds::new(1);
    let (mut state, mut tail, mut checkpoints) = (ThreadState::default(), 0, 0);
    let text = "x".repeat(128);
    let mut half = 0;
    let empty = size(directory.path()).await;
    for turn in 0..TURNS {
        let id = format!("run-0000-0000-0000-{turn:012}");
        let admitted = runs.admit(new_run(&id, "t1")).await.unwrap().run;
        let mut writes = Vec::new();
        for update in [
            StateUpdate::messages([message(&format!("h{turn}"), &text)]),
            StateUpdate::messages([message(&format!("a{turn}"), &text)]),
            StateUpdate::channel("title", "A title of a few words".into()),
        ] {
            state.apply(update, &ids).unwrap();
            checkpoints += 1;
            writes.push(checkpoint_write(
                "t1",
                Some(&id),
                checkpoints,
                &mut state,
                &mut tail,
            ));
        }
        let events = (0..6).map(|_| event("t1", &id, &text)).collect();
        let commit = RunCommit {
            advance: Some(RunStatus::Running),
            events,
            checkpoints: writes,
            ..commit_of(&admitted)
        };
        runs.commit(commit.into()).await.unwrap();
        let commit = RunCommit {
            end: Some(end_in(RunStatus::Success)),
            ..commit_of(&admitted)
        };
        runs.commit(commit.into()).await.unwrap();
        if turn + 1 == TURNS / 2 {
            half = size(directory.path()).await;
        }
    }
    let whole = size(directory.path()).await;
    let (first, second) = (half - empty, whole - half);
    assert!(
        second < first * 11 / 10,
        "first half {first}, second half {second} bytes"
    );
    let of_2000_turns = whole * 2_000 / i64::try_from(TURNS).unwrap();
    assert!(
        of_2000_turns < 64 << 20,
        "{of_2000_turns} bytes after 2,000 turns"
    );
    let wal = std::fs::metadata(directory.path().join("deerflow.db-wal"))
        .unwrap()
        .len();
    assert!(wal < 16 << 20, "a log of {wal} bytes");
}
