//! Opens the configured stores.

use std::sync::Arc;

use anyhow::Context as _;
use deerflow_domain::accounts::AccountStores;
use deerflow_domain::channels::ChannelStores;
use deerflow_domain::readiness::ReadinessProbe;
use deerflow_stores::{
    Database, DatabaseReadiness, SqlAccountStore, SqlApiKeyStore, SqlAssistantStore,
    SqlChannelStore, SqlCheckpointer, SqlCronStore, SqlFeedbackStore, SqlFlowStore, SqlItemStore,
    SqlMaintenanceStore, SqlMemoryStore, SqlNodeStore, SqlRequestStore, SqlRunStore, SqlStreamLog,
    SqlTaskStore, SqlThreadLog, SqlUsageStore, SqlWebhookOutbox,
};
use harness::clock::Clock;
use harness::ids::IdSource;
use harness::runtime::tasks::Tasks;

use super::context::Context;
use super::database::{data_folder, database_of, node_address};
use super::journal::{self, EventStores};
use super::user_rows::UserRows;
use crate::migration_bar::open_database;

/// All stores, over one database.
#[derive(Debug)]
pub(super) struct Stores {
    /// Clock of the database, with which its timestamps are written and compared.
    pub(super) clock: Arc<dyn Clock>,
    pub(super) runs: Arc<SqlRunStore>,
    pub(super) of_events: EventStores,
    pub(super) nodes: Arc<SqlNodeStore>,
    pub(super) checkpoints: Arc<SqlCheckpointer>,
    pub(super) feedback: Arc<SqlFeedbackStore>,
    pub(super) requests: Arc<SqlRequestStore>,
    pub(super) streams: Arc<SqlStreamLog>,
    pub(super) thread_log: Arc<SqlThreadLog>,
    pub(super) maintenance: Arc<SqlMaintenanceStore>,
    pub(super) usage: Arc<SqlUsageStore>,
    pub(super) webhooks: Arc<SqlWebhookOutbox>,
    pub(super) assistants: Arc<SqlAssistantStore>,
    pub(super) items: Arc<SqlItemStore>,
    pub(super) memories: Arc<SqlMemoryStore>,
    pub(super) crons: Arc<SqlCronStore>,
    pub(super) scheduled_tasks: Arc<SqlTaskStore>,
    pub(super) flows: Arc<SqlFlowStore>,
    pub(super) channels: ChannelStores,
    pub(super) keys: Arc<SqlApiKeyStore>,
    pub(super) accounts: AccountStores,
    pub(super) user_rows: UserRows,
    /// The database, which checks the quotas of users.
    pub(super) database: Database,
    /// Readiness probes of the storage locations.
    pub(super) probes: Vec<Arc<dyn ReadinessProbe>>,
}

impl Stores {
    /// Opens the stores; their tasks are spawned in `tasks`.
    pub(super) async fn open(context: &Context<'_>, tasks: &Tasks) -> anyhow::Result<Self> {
        let (config, settings) = (&context.now, context.settings);
        let address = database_of(config, settings)?;
        let reserve = config.database.disk_reserve_bytes();
        let db = open_database(&address, reserve, tasks).await?;
        let ready = DatabaseReadiness::new(db.clone(), context.ids.node_id().as_str());
        let mut probes: Vec<Arc<dyn ReadinessProbe>> = vec![Arc::new(ready), data_folder(settings)];
        let runs = Arc::new(SqlRunStore::new(db.clone()));
        let journal = journal::open(config, settings, &mut probes)?;
        let nodes = SqlNodeStore::new(db.clone()).with_address(node_address(settings));
        let clock = db.clock(tasks).await;
        let clock = clock.context("cannot read the time from the database")?;
        Ok(Self {
            clock,
            of_events: EventStores::new(&db, &runs, journal),
            runs,
            nodes: Arc::new(nodes),
            checkpoints: Arc::new(SqlCheckpointer::new(db.clone())),
            assistants: Arc::new(SqlAssistantStore::new(db.clone())),
            feedback: Arc::new(SqlFeedbackStore::new(db.clone())),
            requests: Arc::new(SqlRequestStore::new(db.clone())),
            streams: Arc::new(SqlStreamLog::new(db.clone())),
            thread_log: Arc::new(SqlThreadLog::new(db.clone())),
            maintenance: Arc::new(SqlMaintenanceStore::new(db.clone())),
            usage: Arc::new(SqlUsageStore::new(db.clone())),
            webhooks: Arc::new(SqlWebhookOutbox::new(&db)),
            items: Arc::new(SqlItemStore::new(db.clone())),
            memories: Arc::new(SqlMemoryStore::new(db.clone())),
            crons: Arc::new(SqlCronStore::new(db.clone())),
            scheduled_tasks: Arc::new(SqlTaskStore::new(db.clone())),
            flows: Arc::new(SqlFlowStore::new(db.clone())),
            channels: SqlChannelStore::new(db.clone()).stores(),
            keys: Arc::new(SqlApiKeyStore::new(&db)),
            accounts: SqlAccountStore::new(db.clone()).stores(),
            user_rows: UserRows::of(&db),
            database: db,
            probes,
        })
    }
}
