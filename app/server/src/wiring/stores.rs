//! Opens the configured stores.

use std::sync::Arc;

use anyhow::Context;
use deerflow_domain::api_keys::ApiKeyStore;
use deerflow_domain::assistants::AssistantStore;
use deerflow_domain::crons::CronStore;
use deerflow_domain::feedback::FeedbackStore;
use deerflow_domain::items::ItemStore;
use deerflow_domain::maintenance::MaintenanceStore;
use deerflow_domain::readiness::{ReadinessProbe, StoredFile};
use deerflow_domain::threads::ThreadStore;
use deerflow_domain::usage::UsageStore;
use deerflow_stores::{
    Database, DatabaseConfig, DatabaseReadiness, FolderReadiness, JsonlRunEventStore,
    PostgresConfig, SplitCommitStore, SqlApiKeyStore, SqlAssistantStore, SqlCheckpointer,
    SqlCronStore, SqlFeedbackStore, SqlItemStore, SqlMaintenanceStore, SqlMemoryStore,
    SqlNodeStore, SqlRequestStore, SqlRunEventStore, SqlRunStore, SqlStreamLog, SqlThreadStore,
    SqlUsageStore, SqlWebhookOutbox,
};
use harness::clock::Clock;
use harness::config::{AppConfig, DatabaseBackend, RunEventsBackend, StreamBridgeKind};
use harness::runtime::checkpoint::Checkpointer;
use harness::runtime::in_memory::InMemoryStores;
use harness::runtime::runs::store::{
    NodeStore, RequestStore, RunCommitStore, RunDeleteStore, RunEventStore, WebhookOutbox,
};
use harness::runtime::stream_bridge::StreamLog;
use harness::runtime::tasks::Tasks;
use harness::user_memory::UserMemoryStore;

use crate::config::Settings;

/// All stores, over one database.
#[derive(Debug)]
pub(super) struct Stores {
    /// Clock of the database, with which its timestamps are written and compared.
    pub(super) clock: Arc<dyn Clock>,
    pub(super) runs: Arc<SqlRunStore>,
    pub(super) nodes: Arc<dyn NodeStore>,
    pub(super) commits: Arc<dyn RunCommitStore>,
    pub(super) deletes: Arc<dyn RunDeleteStore>,
    pub(super) events: Arc<dyn RunEventStore>,
    pub(super) checkpoints: Arc<dyn Checkpointer>,
    pub(super) threads: Arc<dyn ThreadStore>,
    pub(super) feedback: Arc<dyn FeedbackStore>,
    pub(super) requests: Arc<dyn RequestStore>,
    pub(super) streams: Arc<dyn StreamLog>,
    pub(super) maintenance: Arc<dyn MaintenanceStore>,
    pub(super) usage: Arc<dyn UsageStore>,
    pub(super) webhooks: Arc<dyn WebhookOutbox>,
    pub(super) assistants: Arc<dyn AssistantStore>,
    pub(super) items: Arc<dyn ItemStore>,
    pub(super) memories: Arc<dyn UserMemoryStore>,
    pub(super) crons: Arc<dyn CronStore>,
    pub(super) keys: Arc<dyn ApiKeyStore>,
    /// Readiness probes of the storage locations.
    pub(super) probes: Vec<Arc<dyn ReadinessProbe>>,
}

impl Stores {
    /// Opens the stores for the process with the id `process`.
    pub(super) async fn open(
        config: &AppConfig,
        settings: &Settings,
        process: &str,
        tasks: &Tasks,
    ) -> anyhow::Result<Self> {
        let reserve = config.database.disk_reserve_bytes();
        let database =
            Database::open_with_reserve(&database_of(config, settings)?, reserve, tasks).await?;
        let mut probes: Vec<Arc<dyn ReadinessProbe>> = vec![
            Arc::new(DatabaseReadiness::new(database.clone(), process)),
            data_folder(settings),
        ];
        let runs = Arc::new(SqlRunStore::new(database.clone()));
        let threads = SqlThreadStore::new(database.clone());
        let journal: Option<Arc<dyn RunEventStore>> = match config.run_events.backend {
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
        };
        type Journaled = (
            Arc<dyn RunCommitStore>,
            Arc<dyn RunDeleteStore>,
            Arc<dyn RunEventStore>,
            SqlThreadStore,
        );
        let (commits, deletes, events, threads): Journaled = match journal {
            None => (
                runs.clone(),
                runs.clone(),
                Arc::new(SqlRunEventStore::new(database.clone())),
                threads,
            ),
            Some(journal) => {
                let split = Arc::new(SplitCommitStore::new((*runs).clone(), journal.clone()));
                (
                    split.clone(),
                    split,
                    journal.clone(),
                    threads.with_journal(journal),
                )
            }
        };
        let clock = database
            .clock(tasks)
            .await
            .context("cannot read the time from the database")?;
        Ok(Self {
            clock,
            runs,
            nodes: Arc::new(
                SqlNodeStore::new(database.clone()).with_address(node_address(settings)),
            ),
            commits,
            deletes,
            events,
            checkpoints: Arc::new(SqlCheckpointer::new(database.clone())),
            assistants: Arc::new(SqlAssistantStore::new(database.clone())),
            feedback: Arc::new(SqlFeedbackStore::new(database.clone())),
            requests: Arc::new(SqlRequestStore::new(database.clone())),
            streams: Arc::new(SqlStreamLog::new(database.clone())),
            maintenance: Arc::new(SqlMaintenanceStore::new(database.clone())),
            usage: Arc::new(SqlUsageStore::new(database.clone())),
            webhooks: Arc::new(SqlWebhookOutbox::new(&database)),
            items: Arc::new(SqlItemStore::new(database.clone())),
            memories: Arc::new(SqlMemoryStore::new(database.clone())),
            crons: Arc::new(SqlCronStore::new(database.clone())),
            keys: Arc::new(SqlApiKeyStore::new(&database)),
            threads: Arc::new(threads),
            probes,
        })
    }
}

/// Returns a readiness probe of the data folder. Creates the folder now, so it is missing later
/// only if it was removed.
fn data_folder(settings: &Settings) -> Arc<dyn ReadinessProbe> {
    if let Err(error) = std::fs::create_dir_all(&settings.home) {
        tracing::warn!(folder = %settings.home.display(), %error, "cannot create the data folder");
    }
    Arc::new(FolderReadiness::new(
        "data_folder",
        StoredFile::DataFolder,
        settings.home.clone(),
    ))
}

/// Returns the address of this process, as far as known: a wildcard address is replaced by the
/// machine's name.
fn node_address(settings: &Settings) -> String {
    let machine = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    format!("{machine} {}:{}", settings.host, settings.port)
}

/// Converts the database configuration to an address for the stores.
pub(super) fn database_of(
    config: &AppConfig,
    settings: &Settings,
) -> anyhow::Result<DatabaseConfig> {
    let database = &config.database;
    Ok(match database.backend {
        DatabaseBackend::Memory => DatabaseConfig::Memory,
        DatabaseBackend::Sqlite => DatabaseConfig::Sqlite(settings.sqlite_dir(database)),
        DatabaseBackend::Postgres => DatabaseConfig::Postgres(PostgresConfig {
            url: database
                .postgres_url
                .clone()
                .context("database.backend is postgres, but database.postgres_url is not set")?,
            schema: Some(database.postgres_schema.clone()).filter(|schema| !schema.is_empty()),
            max_connections: database.pool_size,
            // In Redis, viewers find the events of every run; in memory only those of the same
            // process.
            exclusive: config.stream_bridge.kind != StreamBridgeKind::Redis,
        }),
        other => anyhow::bail!("database.backend {other:?} is not supported by this build"),
    })
}
