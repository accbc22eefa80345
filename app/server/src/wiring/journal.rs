//! Selects where the events of runs are stored: in the database, or in a separate journal.

use std::sync::Arc;

use anyhow::Context as _;
use deerflow_domain::readiness::ReadinessProbe;
use deerflow_stores::{
    Database, JsonlRunEventStore, SplitCommitStore, SqlRunEventStore, SqlRunStore, SqlThreadStore,
};
use harness::config::{AppConfig, DatabaseBackend, RunEventsBackend, StreamBridgeKind};
use harness::runtime::in_memory::InMemoryStores;
use harness::runtime::runs::store::{RunCommitStore, RunDeleteStore, RunEventStore};

use crate::config::Settings;

/// Stores that write or delete events of runs.
#[derive(Debug)]
pub(super) struct EventStores {
    pub(super) commits: Arc<dyn RunCommitStore>,
    pub(super) deletes: Arc<dyn RunDeleteStore>,
    pub(super) events: Arc<dyn RunEventStore>,
    pub(super) threads: Arc<SqlThreadStore>,
}

impl EventStores {
    /// Returns the stores over the database and the journal, if there is one.
    pub(super) fn new(
        database: &Database,
        runs: &Arc<SqlRunStore>,
        journal: Option<Arc<dyn RunEventStore>>,
    ) -> Self {
        let threads = SqlThreadStore::new(database.clone());
        match journal {
            None => Self {
                commits: runs.clone(),
                deletes: runs.clone(),
                events: Arc::new(SqlRunEventStore::new(database.clone())),
                threads: Arc::new(threads),
            },
            Some(journal) => {
                let split = Arc::new(SplitCommitStore::new((**runs).clone(), journal.clone()));
                Self {
                    commits: split.clone(),
                    deletes: split,
                    events: journal.clone(),
                    threads: Arc::new(threads.with_journal(journal)),
                }
            }
        }
    }
}

/// Opens the configured journal; adds the readiness probe of its folder to `probes`.
pub(super) fn open(
    config: &AppConfig,
    settings: &Settings,
    probes: &mut Vec<Arc<dyn ReadinessProbe>>,
) -> anyhow::Result<Option<Arc<dyn RunEventStore>>> {
    Ok(match config.run_events.backend {
        RunEventsBackend::Db => None,
        // Each node would have only the history of the runs it executed.
        own if config.database.backend == DatabaseBackend::Postgres
            && config.stream_bridge.kind == StreamBridgeKind::Redis =>
        {
            anyhow::bail!(
                "refusing to start: with database.backend postgres and stream_bridge.type redis there may be several nodes, and \
                 run_events.backend {own:?} keeps each run's history on the one that executed it; set run_events.backend to db"
            )
        }
        RunEventsBackend::Memory => Some(Arc::new(InMemoryStores::new())),
        RunEventsBackend::Jsonl => {
            let directory = settings.home.join("run_events");
            let journal = JsonlRunEventStore::open(&directory).with_context(|| {
                format!(
                    "run_events.backend is jsonl, but {} cannot be used",
                    directory.display()
                )
            })?;
            probes.push(journal.readiness());
            Some(Arc::new(journal))
        }
        other => anyhow::bail!("run_events.backend {other:?} is not supported by this build"),
    })
}
