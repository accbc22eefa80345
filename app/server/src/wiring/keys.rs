//! Opens the API keys of an installation, whether or not its server is running.

use std::sync::Arc;

use deerflow_domain::accounts::AccountStores;
use deerflow_domain::api_keys::ApiKeyStore;
use deerflow_stores::{Database, OpenError, SqlAccountStore, SqlApiKeyStore};
use harness::config::AppConfig;
use harness::runtime::tasks::Tasks;

use super::database::database_of;
use crate::config::Settings;

/// Stores of keys and of the accounts that own them.
#[derive(Debug, Clone)]
pub struct KeyStores {
    /// Keys.
    pub keys: Arc<dyn ApiKeyStore>,
    /// Accounts.
    pub accounts: AccountStores,
}

/// Opens keys and accounts for one command. The caller must shut `tasks` down afterwards.
pub async fn open(
    config: &AppConfig,
    settings: &Settings,
    tasks: &Tasks,
) -> anyhow::Result<KeyStores> {
    let address = database_of(config, settings)?;
    let db = match Database::open(&address, tasks).await {
        Err(OpenError::InUse { .. } | OpenError::InUseByOthers | OpenError::InUseByOne) => {
            Database::open_shared(&address).await?
        }
        opened => opened?,
    };
    Ok(KeyStores {
        keys: Arc::new(SqlApiKeyStore::new(&db)),
        accounts: SqlAccountStore::new(db).stores(),
    })
}
