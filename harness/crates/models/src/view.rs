//! List of models for clients.

use serde::{Deserialize, Serialize};

use super::catalog::ModelFacts;
use super::entry::ModelEntry;
use deerflow_core::config::AppConfig;

/// Models that clients can choose from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelList {
    /// Models in the order of the configuration.
    pub models: Vec<ModelFacts>,
    /// Settings for the display of token usage.
    pub token_usage: TokenUsageView,
}

/// Settings for the display of token usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUsageView {
    /// `true` if clients display token usage.
    pub enabled: bool,
}

impl From<&AppConfig> for ModelList {
    fn from(config: &AppConfig) -> Self {
        let models = config
            .models
            .iter()
            .map(|model| ModelFacts::from(&ModelEntry::from(model)))
            .collect();
        Self {
            models,
            token_usage: TokenUsageView {
                enabled: config.token_usage.enabled,
            },
        }
    }
}
