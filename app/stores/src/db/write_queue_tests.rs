//! Failures that the single writer survives.

use deerflow_runtime::runs::store::{AdmitError, RunCreateStore, RunQueryStore, StoreError};
use deerflow_runtime::testkit::new_run;
use futures_util::future::join_all;
use sea_orm::ConnectionTrait;

use super::*;
use crate::db::tx::{FastWork, Prepared};
use crate::{Database, DatabaseConfig, SqlRunStore};

async fn open(directory: &tempfile::TempDir, tasks: &Tasks) -> Database {
    Database::open(&DatabaseConfig::Sqlite(directory.path().to_owned()), tasks)
        .await
        .unwrap()
}

/// Limits the file to this number of pages, on both connections of the writer; beyond it, SQLite
/// reports a full disk.
async fn limit_pages(db: &Database, pages: &'static str) {
    let set: Work<&'static str, (), StoreError> = |tx, pages| {
        Box::pin(async move {
            tx.execute_unprepared(&format!("PRAGMA max_page_count = {pages}"))
                .await?;
            Ok(())
        })
    };
    let also_set: PreparedWork<&'static str, (), StoreError> = |connection, pages| {
        connection.execute_batch(&format!("PRAGMA max_page_count = {pages}"))?;
        Ok(Prepared::Unsuited)
    };
    let fast = FastWork {
        sqlite: also_set,
        postgres: None,
    };
    let writes = db.writes();
    writes
        .run_fast(WriteClass::Progress, pages, set, Some(fast))
        .await
        .unwrap();
}

#[tokio::test]
async fn full_disk_refuses_writes_retains_acknowledged_and_recovers() {
    let (directory, tasks) = (tempfile::tempdir().unwrap(), Tasks::new());
    let db = open(&directory, &tasks).await;
    let store = SqlRunStore::new(db.clone());
    limit_pages(&db, "40").await;
    let admitted =
        join_all((0..400).map(|n| store.admit(new_run(&format!("r{n}"), &format!("t{n}"))))).await;
    let accepted = admitted.iter().filter(|result| result.is_ok()).count();
    let refused = admitted
        .iter()
        .filter(|result| matches!(result, Err(AdmitError::Store(StoreError::NotWritable(_)))))
        .count();
    assert!(
        accepted > 0 && refused > 0 && accepted + refused == 400,
        "{accepted} accepted, {refused} refused: {:?}",
        admitted.last()
    );
    assert_eq!(
        store
            .standing(None, &deerflow_core::actor_context::Owner::None)
            .await
            .unwrap()
            .len(),
        accepted
    );
    limit_pages(&db, "4294967294").await;
    store.admit(new_run("after", "after")).await.unwrap();
    assert_eq!(
        store
            .standing(None, &deerflow_core::actor_context::Owner::None)
            .await
            .unwrap()
            .len(),
        accepted + 1
    );
}

#[tokio::test]
async fn panicking_work_is_rolled_back_and_queue_continues() {
    let tasks = Tasks::new();
    let db = Database::open(&DatabaseConfig::Memory, &tasks)
        .await
        .unwrap();
    let panics: Work<(), (), StoreError> = |tx, ()| {
        Box::pin(async move {
            tx.execute_unprepared("DELETE FROM seaql_migrations")
                .await?;
            panic!("boom")
        })
    };
    let migrations = || async {
        let statement = sea_orm::Statement::from_string(
            sea_orm::DbBackend::Sqlite,
            "SELECT COUNT(*) FROM seaql_migrations",
        );
        db.reads()
            .query_one_raw(statement)
            .await
            .unwrap()
            .unwrap()
            .try_get_by_index::<i64>(0)
            .unwrap()
    };
    let before = migrations().await;
    assert_eq!(
        db.writes().run((), panics).await,
        Err(StoreError::Failed("the write panicked: boom".to_owned()))
    );
    SqlRunStore::new(db.clone())
        .admit(new_run("r1", "t1"))
        .await
        .unwrap();
    assert_eq!(migrations().await, before);
}

#[tokio::test]
async fn shutdown_completes_queued_writes_and_refuses_later_ones() {
    let (directory, tasks) = (tempfile::tempdir().unwrap(), Tasks::new());
    let db = open(&directory, &tasks).await;
    let store = SqlRunStore::new(db.clone());
    let waiting =
        join_all((0..50).map(|n| store.admit(new_run(&format!("r{n}"), &format!("t{n}")))));
    let (answers, ()) = tokio::join!(waiting, tasks.shut_down());
    let accepted = answers.iter().filter(|result| result.is_ok()).count();
    assert!(answers.iter().all(|result| matches!(
        result,
        Ok(_) | Err(AdmitError::Store(StoreError::Unavailable(_)))
    )));
    assert!(matches!(
        store.admit(new_run("late", "late")).await,
        Err(AdmitError::Store(StoreError::Unavailable(_)))
    ));
    drop((store, db));
    let tasks = Tasks::new();
    assert_eq!(
        SqlRunStore::new(open(&directory, &tasks).await)
            .standing(None, &deerflow_core::actor_context::Owner::None)
            .await
            .unwrap()
            .len(),
        accepted
    );
}

#[tokio::test]
async fn urgent_write_is_taken_before_queued_ones() {
    type Log = Arc<parking_lot::Mutex<Vec<&'static str>>>;
    type Signals = Arc<(tokio::sync::Notify, tokio::sync::Notify)>;
    let tasks = Tasks::new();
    let db = Database::open(&DatabaseConfig::Memory, &tasks)
        .await
        .unwrap();
    let blocks: Work<Signals, (), StoreError> = |_, signals| {
        Box::pin(async move {
            signals.0.notify_one();
            signals.1.notified().await;
            Ok(())
        })
    };
    let notes: Work<(Log, &'static str), (), StoreError> = |_, (log, name)| {
        Box::pin(async move {
            log.lock().push(*name);
            Ok(())
        })
    };
    let (log, signals) = (Log::default(), Signals::default());
    let (writes, urgent) = (db.writes().clone(), db.writes().urgent());
    let queueing = async {
        signals.0.notified().await;
        let results = tokio::join!(
            writes.run((log.clone(), "first"), notes),
            writes.run((log.clone(), "second"), notes),
            urgent.run((log.clone(), "urgent"), notes),
            async { signals.1.notify_one() },
        );
        assert!(results.0.is_ok() && results.1.is_ok() && results.2.is_ok());
    };
    let (blocked, ()) = tokio::join!(writes.run(signals.clone(), blocks), queueing);
    blocked.unwrap();
    assert_eq!(*log.lock(), ["urgent", "first", "second"]);
}
