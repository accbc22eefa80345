//! Probes of `doctor` that use the adapters of an installation.

use std::sync::Arc;

use async_trait::async_trait;
use deerflow_bridges::redis::{RedisStreamBridge, SAFE_POLICY};
use deerflow_channels::ChannelInspector;
use deerflow_stores::{Database, Probe, Schema};
use harness::clock::{Clock, SystemClock};
use harness::config::{AppConfig, DatabaseConfig, ModelConfig, SandboxConfig, StreamBridgeConfig};
use harness::config_file::Environment;
use harness::models::http::sign_in;
use harness::models::{ModelCatalog, ModelEntry, ProviderKind};
use harness::runtime::tasks::Tasks;
use harness::sandbox::command::bubblewrap::{Layer, LayerReport, ProbeReport};

use super::probes::{ChannelProbe, CommandProbe, DatabaseProbe, ProviderProbe, RedisProbe};
use crate::config::Settings;
use crate::sandbox::{self, bubblewrap, containers};
use crate::wiring::database::database_of;
use crate::wiring::{bridge, channel_operations};

/// Probes the database without changing it.
#[derive(Debug, Clone, Copy)]
pub struct LiveDatabaseProbe;

#[async_trait]
impl DatabaseProbe for LiveDatabaseProbe {
    async fn probe(
        &self,
        database: &DatabaseConfig,
        settings: &Settings,
    ) -> Result<String, String> {
        let mut config = AppConfig::default();
        config.database = database.clone();
        let address = database_of(&config, settings).map_err(|error| error.to_string())?;
        let Probe {
            schema,
            in_use,
            migration,
        } = Database::probe(&address)
            .await
            .map_err(|error| error.to_string())?;
        let backend = format!("{:?}", database.backend).to_lowercase();
        let found = match schema {
            Schema::Missing => format!("{backend} has no schema yet, it will be created"),
            Schema::Older { version } => match migration {
                Some(progress) => {
                    format!("{backend} answers, its schema {version} is being migrated: {progress}")
                }
                None => format!("{backend} answers, its schema {version} will be migrated"),
            },
            Schema::Current => format!("{backend} answers and its schema is up to date"),
            Schema::Newer { version } => {
                return Err(format!(
                    "the schema was created by a newer deerflow ({version} is unknown here)"
                ));
            }
        };
        Ok(if in_use {
            format!("{found}; a running deerflow uses it")
        } else {
            found
        })
    }
}

/// Probes the Redis server of the stream bridge.
#[derive(Debug, Clone, Copy)]
pub struct LiveRedisProbe;

#[async_trait]
impl RedisProbe for LiveRedisProbe {
    async fn probe(
        &self,
        bridge: &StreamBridgeConfig,
        settings: &Settings,
    ) -> Result<Result<String, String>, String> {
        let policy = RedisStreamBridge::probe(bridge::redis(bridge, settings)).await?;
        let found = format!("redis answers, its maxmemory-policy is {policy}");
        Ok(if policy == SAFE_POLICY {
            Ok(found)
        } else {
            Err(found)
        })
    }
}

/// Looks up the provider of a model entry.
#[derive(Debug, Clone, Copy)]
pub struct LiveProviderProbe;

impl ProviderProbe for LiveProviderProbe {
    fn probe(&self, model: &ModelConfig) -> Result<String, String> {
        let kind = check_entry(model, Arc::new(SystemClock))?;
        let file = sign_in(&ModelEntry::from(model)).transpose()?;
        Ok(file.map_or_else(
            || kind.as_str().to_owned(),
            |file| format!("{}, signed in by {}", kind.as_str(), file.display()),
        ))
    }
}

/// Returns the provider of a model entry, or what is wrong with the entry.
fn check_entry(model: &ModelConfig, clock: Arc<dyn Clock>) -> Result<ProviderKind, String> {
    let kind = ProviderKind::parse(&model.provider).map_err(|error| error.to_string())?;
    // Fallbacks are separate entries.
    let mut alone = model.clone();
    alone.fallback_models.clear();
    ModelCatalog::from_config(&[alone], clock)
        .get(&model.name)
        .map_err(|error| error.message)?;
    Ok(kind)
}

/// Creates a sandbox and checks its layers.
#[derive(Debug, Clone, Copy)]
pub struct LiveCommandProbe;

#[async_trait]
impl CommandProbe for LiveCommandProbe {
    fn is_configured(&self, config: &AppConfig) -> bool {
        sandbox::is_configured(config)
    }

    async fn probe(&self, sandbox: &SandboxConfig) -> ProbeReport {
        // A fresh name that no other user can have created.
        match tempfile::Builder::new()
            .prefix("deerflow-doctor-")
            .tempdir()
        {
            Ok(support) => bubblewrap::probe(sandbox, support.path().to_owned()).await,
            Err(error) => {
                let missing = Some(format!(
                    "cannot create a folder to try a sandbox in: {error}"
                ));
                ProbeReport {
                    layers: vec![LayerReport {
                        layer: Layer::Programs,
                        missing,
                    }],
                }
            }
        }
    }

    async fn containers(
        &self,
        sandbox: &SandboxConfig,
        environment: &Environment,
    ) -> Option<Result<String, String>> {
        if !containers::is_configured(sandbox) {
            return None;
        }
        match containers::backend(sandbox, environment, &environment.project_root()) {
            Ok(backend) => Some(backend.version().await.map_err(|error| error.to_string())),
            Err(why) => Some(Err(why)),
        }
    }
}

/// Reads the stored credentials of channels from the configured database.
#[derive(Debug, Clone, Copy)]
pub struct LiveChannelProbe;

#[async_trait]
impl ChannelProbe for LiveChannelProbe {
    async fn inspector(
        &self,
        config: &AppConfig,
        settings: &Settings,
        environment: &Environment,
    ) -> Result<ChannelInspector, String> {
        let tasks = Tasks::new();
        let opened = channel_operations::open(config, settings, environment, &tasks).await;
        tasks.shut_down().await;
        opened
            .map(|opened| opened.inspector)
            .map_err(|error| format!("{error:#}"))
    }
}
