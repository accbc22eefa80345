//! Opens the chat channels of an installation for a command, whether or not its server is running.

use std::sync::Arc;

use anyhow::Context as _;
use deerflow_channels::platform::PlatformContext;
use deerflow_channels::{ChannelInspector, ChannelsConfig, CredentialKey, http_client, platforms};
use deerflow_domain::channels::{ChannelStores, InMemoryChannels};
use deerflow_stores::{Database, Schema, SqlChannelStore};
use harness::clock::{Clock, SystemClock};
use harness::config::AppConfig;
use harness::config_file::Environment;
use harness::runtime::tasks::Tasks;

use super::channels::{KEY_FILE, KEY_VARIABLE};
use super::database::database_of;
use crate::config::Settings;

/// Chat channels of an installation.
#[derive(Debug)]
pub struct OpenedChannels {
    /// Stores of channels; empty ones without a database.
    pub stores: ChannelStores,
    /// Clock of the stores.
    pub clock: Arc<dyn Clock>,
    /// Configured channels with their stored credentials.
    pub inspector: ChannelInspector,
    /// `true` if the installation has a database.
    pub has_database: bool,
    /// `true` if a process is using the database.
    pub in_use: bool,
}

/// Opens the channels without creating anything. The caller must shut `tasks` down afterwards.
pub async fn open(
    config: &AppConfig,
    settings: &Settings,
    environment: &Environment,
    tasks: &Tasks,
) -> anyhow::Result<OpenedChannels> {
    let address = database_of(config, settings)?;
    let probe = Database::probe(&address).await?;
    let has_database = probe.schema != Schema::Missing;
    let (stores, clock): (_, Arc<dyn Clock>) = if has_database {
        let db = Database::open_shared(&address).await?;
        (
            SqlChannelStore::new(db.clone()).stores(),
            db.clock(tasks).await?,
        )
    } else {
        (InMemoryChannels::stores(), Arc::new(SystemClock))
    };
    let mut inspector = unconnected(config, clock.clone())?;
    let key = match environment.filled(KEY_VARIABLE) {
        Some(text) => {
            let key = CredentialKey::parse(text);
            Some(key.with_context(|| format!("{KEY_VARIABLE} cannot be used"))?)
        }
        None => {
            let path = settings.home.join(KEY_FILE);
            CredentialKey::from_existing_file(&path)
                .with_context(|| format!("{} cannot be used", path.display()))?
        }
    };
    inspector
        .read_credentials(&*stores.credentials, key.as_ref())
        .await?;
    Ok(OpenedChannels {
        stores,
        clock,
        inspector,
        has_database,
        in_use: probe.in_use,
    })
}

/// Creates an inspector that knows the configuration only.
pub(crate) fn unconnected(
    config: &AppConfig,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<ChannelInspector> {
    let http = http_client().context("cannot create the HTTP client of channels")?;
    let context = PlatformContext { http, clock };
    let config = ChannelsConfig::of(config);
    Ok(ChannelInspector::new(config, platforms(), context))
}
