//! Opens the stores of operator commands, whether or not a server is running.

use deerflow_stores::{
    Database, SqlCheckpointer, SqlNodeStore, SqlOperationsStore, SqlRunStore, SqlWebhookOutbox,
};
use harness::config::AppConfig;
use harness::ids::SystemIds;

use super::database::database_of;
use crate::config::Settings;

/// Stores of operator commands.
#[derive(Debug)]
pub struct OperatorStores {
    /// Nodes that share the database, and their leases.
    pub nodes: SqlNodeStore,
    /// Run lists.
    pub runs: SqlOperationsStore,
    /// Runs, to cancel or retry them.
    pub cancels: SqlRunStore,
    /// Progress of runs.
    pub checkpoints: SqlCheckpointer,
    /// Ids of retrying runs.
    pub ids: SystemIds,
    /// Webhook calls.
    pub outbox: SqlWebhookOutbox,
    /// `true` if a process is using the database.
    pub in_use: bool,
}

/// Opens the configured stores without taking exclusive access from a server.
pub async fn open(config: &AppConfig, settings: &Settings) -> anyhow::Result<OperatorStores> {
    let address = database_of(config, settings)?;
    let in_use = Database::probe(&address).await?.in_use;
    let db = Database::open_shared(&address).await?;
    Ok(OperatorStores {
        nodes: SqlNodeStore::new(db.clone()),
        runs: SqlOperationsStore::new(db.clone()),
        cancels: SqlRunStore::new(db.clone()),
        checkpoints: SqlCheckpointer::new(db.clone()),
        ids: SystemIds::default(),
        outbox: SqlWebhookOutbox::new(&db),
        in_use,
    })
}
