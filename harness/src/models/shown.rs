//! The models as clients see them.

use serde::{Deserialize, Serialize};

use super::catalog::ModelFacts;
use super::entry::ModelEntry;
use crate::config::AppConfig;

/// What there is to choose from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelList {
    /// The models, in the order of the configuration.
    pub models: Vec<ModelFacts>,
    /// Whether clients show what tokens were used.
    pub token_usage: TokenUsageView,
}

/// Whether clients show what tokens were used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUsageView {
    /// Switched on.
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
