//! Long-term memory as clients see it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::document::MemoryDocument;
use super::rules::MemoryRules;
use crate::config::{MemoryConfig, MemoryMode};

/// What is configured: no key of a provider is among it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryView {
    /// Whether anything is remembered.
    pub enabled: bool,
    /// Who writes memories.
    pub mode: MemoryMode,
    /// Whether agents read memories.
    pub injection_enabled: bool,
    /// Seconds a shutdown waits for pending memories.
    pub shutdown_flush_timeout_seconds: f64,
    /// The implementation.
    pub manager_class: String,
    /// Figures of the implementation.
    pub backend_config: Map<String, Value>,
}

impl From<&MemoryConfig> for MemoryView {
    fn from(config: &MemoryConfig) -> Self {
        let rules = MemoryRules::from(config);
        let figures = json!({
            "debounce_seconds": rules.debounce.as_secs_f64(),
            "model_name": rules.model,
            "max_facts": rules.max_facts,
            "fact_confidence_threshold": rules.least_confidence,
            "max_injection_tokens": rules.max_injection_tokens,
        });
        Self {
            enabled: config.enabled,
            mode: config.mode,
            injection_enabled: config.injection_enabled,
            shutdown_flush_timeout_seconds: config.shutdown_flush_timeout_seconds,
            manager_class: config.manager_class.clone(),
            backend_config: figures.as_object().cloned().unwrap_or_default(),
        }
    }
}

/// What is configured, and what is remembered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryStatus {
    /// What is configured.
    pub config: MemoryView,
    /// What is remembered.
    pub data: MemoryDocument,
}
