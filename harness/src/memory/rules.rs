//! What the configuration says of memory, in one shape for both of its layouts.

use std::time::Duration;

use serde_json::Value;

use crate::config::{MemoryConfig, MemoryMode};

/// The rules.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryRules {
    /// Whether runs are remembered.
    pub learns: bool,
    /// Whether agents read memories.
    pub injects: bool,
    /// How long a thread must be quiet.
    pub debounce: Duration,
    /// How long a process that ends goes on learning.
    pub flush: Duration,
    /// The model that decides what is worth keeping; the first one when absent.
    pub model: Option<String>,
    /// Most facts; the surest stay.
    pub max_facts: usize,
    /// Facts that are less sure are not kept.
    pub least_confidence: f64,
    /// Tokens of memory that an agent reads.
    pub max_injection_tokens: u64,
}

impl From<&MemoryConfig> for MemoryRules {
    fn from(config: &MemoryConfig) -> Self {
        // The implementation's own section wins over the flat keys of older files.
        let key = |name: &str| {
            config
                .backend_config
                .get(name)
                .or_else(|| config.extra.get(name))
                .filter(|value| !value.is_null())
        };
        let number = |name: &str, usual: f64| {
            key(name)
                .and_then(Value::as_f64)
                .filter(|number| *number >= 0.0)
                .unwrap_or(usual)
        };
        let class = config.manager_class.to_lowercase();
        let is_ours = class.contains("deermem");
        if !is_ours && !class.contains("noop") {
            tracing::warn!(manager_class = %config.manager_class, "this build has no such memory; nothing is remembered");
        }
        let on = config.enabled && is_ours;
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
    fn both_layouts_are_read_and_the_own_section_wins() {
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
    fn what_is_off_or_not_ours_neither_learns_nor_injects() {
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
