//! Opens the API keys of an installation, whether or not its server is running.

use std::sync::Arc;

use deerflow_domain::api_keys::ApiKeyStore;
use deerflow_stores::{Database, OpenError, SqlApiKeyStore};
use harness::config::AppConfig;
use harness::runtime::tasks::Tasks;

use super::database::database_of;
use crate::config::Settings;

/// Opens the key store for one command. The caller must shut `tasks` down afterwards.
pub async fn open(
    config: &AppConfig,
    settings: &Settings,
    tasks: &Tasks,
) -> anyhow::Result<Arc<dyn ApiKeyStore>> {
    let address = database_of(config, settings)?;
    Ok(match Database::open(&address, tasks).await {
        Ok(database) => Arc::new(SqlApiKeyStore::new(&database)),
        Err(OpenError::InUse { .. } | OpenError::InUseByOthers | OpenError::InUseByOne) => {
            Arc::new(SqlApiKeyStore::new(&Database::open_shared(&address).await?))
        }
        Err(error) => return Err(error.into()),
    })
}
