//! The stores that operators look into, beside a server or without one.

use deerflow_stores::{Database, SqlNodeStore, SqlOperationsStore, SqlRunStore, SqlWebhookOutbox};
use harness::config::AppConfig;

use super::stores::database_of;
use crate::config::Settings;

/// What operators look into.
#[derive(Debug)]
pub struct OperatorStores {
    /// Who lives.
    pub nodes: SqlNodeStore,
    /// Lists of runs.
    pub runs: SqlOperationsStore,
    /// Cancels.
    pub cancels: SqlRunStore,
    /// Calls that tell of ends.
    pub outbox: SqlWebhookOutbox,
    /// Whether a process uses the database now.
    pub in_use: bool,
}

/// The stores of the configuration, none of which is taken from a server.
pub async fn open(config: &AppConfig, settings: &Settings) -> anyhow::Result<OperatorStores> {
    let address = database_of(config, settings)?;
    let in_use = Database::probe(&address).await?.in_use;
    let db = Database::beside_a_server(&address).await?;
    Ok(OperatorStores {
        nodes: SqlNodeStore::new(db.clone()),
        runs: SqlOperationsStore::new(db.clone()),
        cancels: SqlRunStore::new(db.clone()),
        outbox: SqlWebhookOutbox::new(&db),
        in_use,
    })
}
