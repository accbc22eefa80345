//! `memory`: what is remembered about a user across conversations.

use serde::{Deserialize, Serialize};

use super::check::Checker;
use super::open_keys::OpenKeys;

/// Long-term memory.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct MemoryConfig {
    /// Whether anything is remembered.
    pub enabled: bool,
    /// Who writes memories.
    pub mode: MemoryMode,
    /// Whether memories are shown to the model.
    pub injection_enabled: bool,
    /// Seconds a shutdown waits for pending memories.
    pub shutdown_flush_timeout_seconds: f64,
    /// The memory's implementation.
    pub manager_class: String,
    /// Keys of the implementation; they win over the same keys beside them.
    pub backend_config: OpenKeys,
    /// The flat keys of older configurations.
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

/// Who writes memories.
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
