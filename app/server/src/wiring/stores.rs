//! Which stores the configuration asks for.

use std::sync::Arc;

use anyhow::Context;
use deerflow_domain::feedback::FeedbackStore;
use deerflow_domain::threads::ThreadStore;
use deerflow_stores::{
    Database, DatabaseConfig, JsonlRunEventStore, PostgresConfig, SplitCommitStore, SqlCheckpointer, SqlFeedbackStore, SqlRunEventStore,
    SqlRunStore, SqlThreadStore,
};
use harness::config::{AppConfig, DatabaseBackend, RunEventsBackend};
use harness::runtime::checkpoint::Checkpointer;
use harness::runtime::memory::MemoryStores;
use harness::runtime::runs::store::{RunCommitStore, RunEventStore};
use harness::runtime::tasks::Tasks;

use crate::config::Settings;

/// Every store, over one database.
#[derive(Debug)]
pub(super) struct Stores {
    pub(super) runs: Arc<SqlRunStore>,
    pub(super) commits: Arc<dyn RunCommitStore>,
    pub(super) events: Arc<dyn RunEventStore>,
    pub(super) checkpoints: Arc<dyn Checkpointer>,
    pub(super) threads: Arc<dyn ThreadStore>,
    pub(super) feedback: Arc<dyn FeedbackStore>,
}

impl Stores {
    pub(super) async fn open(config: &AppConfig, settings: &Settings, tasks: &Tasks) -> anyhow::Result<Self> {
        let database = Database::open(&database_of(config, settings)?, tasks).await?;
        let runs = Arc::new(SqlRunStore::new(database.clone()));
        let split = |events: Arc<dyn RunEventStore>| -> (Arc<dyn RunCommitStore>, Arc<dyn RunEventStore>) {
            (Arc::new(SplitCommitStore::new((*runs).clone(), events.clone())), events)
        };
        let (commits, events): (Arc<dyn RunCommitStore>, Arc<dyn RunEventStore>) = match config.run_events.backend {
            RunEventsBackend::Db => (runs.clone(), Arc::new(SqlRunEventStore::new(database.clone()))),
            RunEventsBackend::Memory => split(Arc::new(MemoryStores::new())),
            RunEventsBackend::Jsonl => {
                let directory = settings.home.join("run_events");
                let journal = JsonlRunEventStore::open(&directory)
                    .with_context(|| format!("run_events.backend is jsonl, but {} cannot be used", directory.display()))?;
                split(Arc::new(journal))
            }
            other => anyhow::bail!("run_events.backend {other:?} is not supported by this build"),
        };
        Ok(Self {
            runs,
            commits,
            events,
            checkpoints: Arc::new(SqlCheckpointer::new(database.clone())),
            feedback: Arc::new(SqlFeedbackStore::new(database.clone())),
            threads: Arc::new(SqlThreadStore::new(database)),
        })
    }
}

/// The database's address in the stores' words.
pub(super) fn database_of(config: &AppConfig, settings: &Settings) -> anyhow::Result<DatabaseConfig> {
    let database = &config.database;
    Ok(match database.backend {
        DatabaseBackend::Memory => DatabaseConfig::Memory,
        DatabaseBackend::Sqlite => DatabaseConfig::Sqlite(settings.sqlite_dir(database)),
        DatabaseBackend::Postgres => DatabaseConfig::Postgres(PostgresConfig {
            url: database.postgres_url.clone().context("database.backend is postgres, but database.postgres_url is not set")?,
            schema: Some(database.postgres_schema.clone()).filter(|schema| !schema.is_empty()),
            max_connections: database.pool_size,
        }),
        other => anyhow::bail!("database.backend {other:?} is not supported by this build"),
    })
}
