//! What `doctor` may try that only the composition root can.

use std::sync::Arc;

use async_trait::async_trait;
use deerflow_stores::Database;
use harness::clock::SystemClock;
use harness::config::{AppConfig, DatabaseConfig, ModelConfig};
use harness::runtime::tasks::Tasks;

use super::stores::database_of;
use crate::commands::doctor::{DatabaseProbe, ProviderProbe};
use crate::config::Settings;

/// Opens the database and closes it again.
#[derive(Debug, Clone, Copy)]
pub struct OpenDatabase;

#[async_trait]
impl DatabaseProbe for OpenDatabase {
    async fn probe(&self, database: &DatabaseConfig, settings: &Settings) -> Result<String, String> {
        let mut config = AppConfig::default();
        config.database = database.clone();
        let address = database_of(&config, settings).map_err(|error| error.to_string())?;
        let tasks = Tasks::new();
        let opened = Database::open(&address, &tasks).await.map(drop).map_err(|error| error.to_string());
        tasks.shut_down().await;
        opened.map(|()| format!("{:?} answers and its schema is up to date", database.backend).to_lowercase())
    }
}

/// Looks a model entry's provider up.
#[derive(Debug, Clone, Copy)]
pub struct KnownProvider;

impl ProviderProbe for KnownProvider {
    fn probe(&self, model: &ModelConfig) -> Result<String, String> {
        super::agents::check_entry(model, Arc::new(SystemClock)).map(|kind| kind.as_str().to_owned())
    }
}
