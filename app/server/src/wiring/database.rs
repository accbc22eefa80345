//! Locations of the stored data: the database and the data folder.

use std::sync::Arc;

use anyhow::Context as _;
use deerflow_domain::readiness::{ReadinessProbe, StoredFile};
use deerflow_stores::{DatabaseConfig, FolderReadiness, PostgresConfig};
use harness::config::{AppConfig, DatabaseBackend, StreamBridgeKind};

use crate::config::Settings;

/// Converts the database configuration to an address for the stores.
pub fn database_of(config: &AppConfig, settings: &Settings) -> anyhow::Result<DatabaseConfig> {
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

/// Returns a readiness probe of the data folder. Creates the folder now, so it is missing later
/// only if it was removed.
pub(super) fn data_folder(settings: &Settings) -> Arc<dyn ReadinessProbe> {
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
pub(super) fn node_address(settings: &Settings) -> String {
    let machine = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    format!("{machine} {}:{}", settings.host, settings.port)
}
