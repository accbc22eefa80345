//! What `doctor` may try that only the composition root can.

use std::sync::Arc;

use async_trait::async_trait;
use deerflow_bridges::redis::{RedisStreamBridge, SAFE_POLICY};
use deerflow_stores::{Database, Probe, Schema};
use harness::clock::SystemClock;
use harness::config::{AppConfig, DatabaseConfig, ModelConfig, SandboxConfig, StreamBridgeConfig};
use harness::config_file::Environment;
use harness::models::ModelEntry;
use harness::models::http::sign_in;
use harness::sandbox::command::bubblewrap::{Layer, LayerReport, ProbeReport};

use super::stores::database_of;
use crate::commands::doctor::{CommandProbe, DatabaseProbe, ProviderProbe, RedisProbe};
use crate::config::Settings;

/// Looks at the database and changes nothing.
#[derive(Debug, Clone, Copy)]
pub struct LookAtDatabase;

#[async_trait]
impl DatabaseProbe for LookAtDatabase {
    async fn probe(
        &self,
        database: &DatabaseConfig,
        settings: &Settings,
    ) -> Result<String, String> {
        let mut config = AppConfig::default();
        config.database = database.clone();
        let address = database_of(&config, settings).map_err(|error| error.to_string())?;
        let Probe { schema, in_use } = Database::probe(&address)
            .await
            .map_err(|error| error.to_string())?;
        let backend = format!("{:?}", database.backend).to_lowercase();
        let found = match schema {
            Schema::Missing => format!("{backend} has no schema yet, it will be made"),
            Schema::Older { version } => {
                format!("{backend} answers, its schema {version} will be brought up to date")
            }
            Schema::Current => format!("{backend} answers and its schema is up to date"),
            Schema::Newer { version } => {
                return Err(format!(
                    "a newer deerflow wrote the schema ({version} is not known here)"
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

/// Asks the Redis server of the stream bridge.
#[derive(Debug, Clone, Copy)]
pub struct AskRedis;

#[async_trait]
impl RedisProbe for AskRedis {
    async fn probe(
        &self,
        bridge: &StreamBridgeConfig,
        settings: &Settings,
    ) -> Result<Result<String, String>, String> {
        let policy = RedisStreamBridge::probe(super::bridge::redis(bridge, settings)).await?;
        let found = format!("redis answers, its maxmemory-policy is {policy}");
        Ok(if policy == SAFE_POLICY {
            Ok(found)
        } else {
            Err(found)
        })
    }
}

/// Looks a model entry's provider up.
#[derive(Debug, Clone, Copy)]
pub struct KnownProvider;

impl ProviderProbe for KnownProvider {
    fn probe(&self, model: &ModelConfig) -> Result<String, String> {
        let kind = super::agents::check_entry(model, Arc::new(SystemClock))?;
        let file = sign_in(&ModelEntry::from(model)).transpose()?;
        Ok(file.map_or_else(
            || kind.as_str().to_owned(),
            |file| format!("{}, signed in by {}", kind.as_str(), file.display()),
        ))
    }
}

/// Makes a sandbox and looks around in it.
#[derive(Debug, Clone, Copy)]
pub struct TrySandbox;

#[async_trait]
impl CommandProbe for TrySandbox {
    fn is_wanted(&self, config: &AppConfig) -> bool {
        super::commands::is_wanted(config)
    }

    async fn probe(&self, sandbox: &SandboxConfig) -> ProbeReport {
        // A name that nobody can have taken before: what is written there is written by this user.
        match tempfile::Builder::new()
            .prefix("deerflow-doctor-")
            .tempdir()
        {
            Ok(support) => super::commands::probe(sandbox, support.path().to_owned()).await,
            Err(error) => {
                let missing = Some(format!("no folder to try a sandbox in: {error}"));
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
        if !super::containers::is_wanted(sandbox) {
            return None;
        }
        match super::containers::maker(sandbox, environment, &environment.project_root()) {
            Ok(maker) => Some(maker.look().await.map_err(|error| error.to_string())),
            Err(why) => Some(Err(why)),
        }
    }
}
