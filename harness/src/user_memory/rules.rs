//! Memory settings from the configuration, for both of its layouts.

use std::time::Duration;

use serde_json::Value;

use crate::config::{MemoryConfig, MemoryMode};

/// Rules of extracting and injecting memories.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryRules {
    /// `true` if memories are extracted from runs.
    pub learns: bool,
    /// `true` if agents read memories.
    pub injects: bool,
    /// Quiet time of a thread before it is processed.
    pub debounce: Duration,
    /// Maximum time for pending updates during shutdown.
    pub flush: Duration,
    /// Model entry for extraction; `None` selects the first one.
    pub model: Option<String>,
    /// Maximum number of facts; those with the lowest confidence are evicted.
    pub max_facts: usize,
    /// Minimum confidence of a new fact.
    pub least_confidence: f64,
    /// Maximum number of memory tokens in a prompt.
    pub max_injection_tokens: u64,
}

impl From<&MemoryConfig> for MemoryRules {
    fn from(config: &MemoryConfig) -> Self {
        // The implementation's own section has priority over the flat keys of older files.
        let key = |name: &str| {
            config
                .backend_config
                .get(name)
                .or_else(|| config.extra.get(name))
                .filter(|value| !value.is_null())
        };
        let number = |name: &str, default_value: f64| {
            key(name)
                .and_then(Value::as_f64)
                .filter(|number| *number >= 0.0)
                .unwrap_or(default_value)
        };
        let class = config.manager_class.to_lowercase();
        let is_supported = class.contains("deermem");
        if !is_supported && !class.contains("noop") {
            tracing::warn!(manager_class = %config.manager_class, "unknown memory implementation, user memory is disabled");
        }
        let on = config.enabled && is_supported;
        Self {
            learns: on && config.mode == MemoryMode::Middleware,
            injects: on && config.injection_enabled,
            debounce: Duration::from_secs_f64(number("debounce_seconds", 30.0).min(86_400.0)),
            flush: Duration::from_secs_f64(config.shutdown_flush_timeout_seconds.clamp(0.0, 300.0)),
            model: key("model_name")
                .and_then(Value::as_str)
                .filter(|name| !name.is_empty())
                .map(str::to_owned),
            max_facts: number("max_facts", 100.0) as usize,
            least_confidence: number("fact_confidence_threshold", 0.7),
            max_injection_tokens: number("max_injection_tokens", 2_000.0) as u64,
        }
    }
}

impl Default for MemoryRules {
    fn default() -> Self {
        Self::from(&MemoryConfig::default())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rules(config: Value) -> MemoryRules {
        MemoryRules::from(&serde_json::from_value::<MemoryConfig>(config).unwrap())
    }

    #[test]
    fn both_layouts_are_read_and_the_own_section_has_priority() {
        let read = rules(
            json!({"debounce_seconds": 5, "max_facts": 7, "model_name": "m", "backend_config": {"max_facts": 9}}),
        );
        assert_eq!(
            (
                read.debounce.as_secs(),
                read.max_facts,
                read.model.as_deref()
            ),
            (5, 9, Some("m"))
        );
        assert_eq!(rules(json!({})).max_injection_tokens, 2_000);
        assert_eq!(
            rules(json!({"debounce_seconds": "x", "max_facts": -1})),
            MemoryRules::default()
        );
    }

    #[test]
    fn disabled_or_unknown_memory_neither_learns_nor_injects() {
        for config in [
            json!({"enabled": false}),
            json!({"manager_class": "noop"}),
            json!({"manager_class": "mem0"}),
        ] {
            assert!(!rules(config.clone()).learns && !rules(config).injects);
        }
        assert!(!rules(json!({"mode": "tool"})).learns && rules(json!({"mode": "tool"})).injects);
    }
}
