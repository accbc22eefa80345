//! Every store keeps every promise of its ports.

use std::sync::Arc;

use deerflow_stores::{Database, DatabaseConfig, SqlCheckpointer, SqlRunEventStore, SqlRunStore};
use harness::runtime::tasks::Tasks;
use harness::testkit::{Keep, RunStores};

/// The ports over one database.
fn over(db: &Database, keep: Arc<dyn Keep>) -> RunStores {
    let runs = Arc::new(SqlRunStore::new(db.clone()));
    RunStores {
        create: runs.clone(),
        commit: runs.clone(),
        query: runs.clone(),
        delete: runs,
        events: Arc::new(SqlRunEventStore::new(db.clone())),
        checkpoints: Arc::new(SqlCheckpointer::new(db.clone())),
        keep,
    }
}

async fn sqlite() -> RunStores {
    let directory = tempfile::tempdir().unwrap();
    let tasks = Tasks::new();
    let db = Database::open(&DatabaseConfig::Sqlite(directory.path().to_owned()), &tasks).await.unwrap();
    over(&db, Arc::new((directory, tasks)))
}

async fn memory() -> RunStores {
    let tasks = Tasks::new();
    let db = Database::open(&DatabaseConfig::Memory, &tasks).await.unwrap();
    over(&db, Arc::new(tasks))
}

mod sqlite {
    harness::run_store_suite!([#[tokio::test(flavor = "multi_thread", worker_threads = 2)]] super::sqlite);
    harness::run_events_suite!([#[tokio::test(flavor = "multi_thread", worker_threads = 2)]] super::sqlite);
    harness::checkpointer_suite!([#[tokio::test(flavor = "multi_thread", worker_threads = 2)]] super::sqlite);
}

mod sqlite_in_memory {
    harness::run_store_suite!([#[tokio::test(flavor = "multi_thread", worker_threads = 2)]] super::memory);
    harness::run_events_suite!([#[tokio::test(flavor = "multi_thread", worker_threads = 2)]] super::memory);
    harness::checkpointer_suite!([#[tokio::test(flavor = "multi_thread", worker_threads = 2)]] super::memory);
}
