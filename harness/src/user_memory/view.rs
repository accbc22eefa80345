//! Client-facing view of user memory.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::rules::MemoryRules;
use crate::config::{MemoryConfig, MemoryMode};
use deerflow_runtime::user_memory::MemoryDocument;

/// Memory settings for clients, without provider keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryView {
    /// `true` if memory is enabled.
    pub enabled: bool,
    /// Mode in which memories are written.
    pub mode: MemoryMode,
    /// `true` if agents read memories.
    pub injection_enabled: bool,
    /// Maximum time of a shutdown for pending updates, in seconds.
    pub shutdown_flush_timeout_seconds: f64,
    /// Name of the implementation.
    pub manager_class: String,
    /// Settings of the implementation.
    pub backend_config: Map<String, Value>,
}

impl From<&MemoryConfig> for MemoryView {
    fn from(config: &MemoryConfig) -> Self {
        let rules = MemoryRules::from(config);
        let settings = json!({
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
            backend_config: settings.as_object().cloned().unwrap_or_default(),
        }
    }
}

/// Memory settings and content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryStatus {
    /// Settings.
    pub config: MemoryView,
    /// Memory document.
    pub data: MemoryDocument,
}
