//! `memory`: facts about a user that are remembered across conversations.

use serde::{Deserialize, Serialize};

use super::check::Checker;
use super::open_keys::OpenKeys;

/// User memory: facts that are extracted from conversations.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct MemoryConfig {
    /// Enables the memory.
    pub enabled: bool,
    /// Component that writes memories.
    pub mode: MemoryMode,
    /// Injects memories into the prompt.
    pub injection_enabled: bool,
    /// Maximum time that a shutdown waits for pending memory updates, in seconds.
    pub shutdown_flush_timeout_seconds: f64,
    /// Implementation of the memory.
    pub manager_class: String,
    /// Keys of the implementation; they take precedence over the same keys of this section.
    pub backend_config: OpenKeys,
    /// Flat keys of older configurations.
    #[serde(flatten)]
    pub extra: OpenKeys,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            mode: MemoryMode::Middleware,
            injection_enabled: true,
            shutdown_flush_timeout_seconds: 30.0,
            manager_class: "deermem".to_owned(),
            backend_config: OpenKeys::default(),
            extra: OpenKeys::default(),
        }
    }
}

impl MemoryConfig {
    pub(super) fn check(&self, check: &mut Checker) {
        check.within(
            "shutdown_flush_timeout_seconds",
            self.shutdown_flush_timeout_seconds,
            1.0..=300.0,
        );
    }
}

/// Component that writes memories.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum MemoryMode {
    /// The framework, after each run.
    #[default]
    Middleware,
    /// The model, through tools.
    Tool,
}
