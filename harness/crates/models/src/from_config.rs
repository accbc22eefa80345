//! Conversions from the configuration to the types of this module.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{BreakerPolicy, ModelCatalog, ModelEntry, Pricing, RetryPolicy};
use deerflow_core::clock::Clock;
use deerflow_core::config::{CircuitBreakerConfig, LlmCallConfig, ModelConfig, OpenKeys};

impl From<&ModelConfig> for ModelEntry {
    fn from(config: &ModelConfig) -> Self {
        let map = |keys: &OpenKeys| Map::clone(keys);
        let mut extra = map(&config.extra);
        if config.use_responses_api == Some(true) {
            extra.insert("use_responses_api".to_owned(), json!(true));
        }
        // The key is moved to a type that hides it in debug output.
        let api_key = config.extra.secret("api_key");
        if let Some(Value::String(_)) = extra.get("api_key") {
            extra.shift_remove("api_key");
        }
        Self {
            name: config.name.clone(),
            use_path: config.provider.clone(),
            model: config.model.clone(),
            display_name: config.display_name.clone(),
            description: config.description.clone(),
            supports_thinking: config.supports_thinking,
            supports_reasoning_effort: config.supports_reasoning_effort,
            supports_vision: config.supports_vision,
            when_thinking_enabled: config.when_thinking_enabled.as_ref().map(map),
            when_thinking_disabled: config.when_thinking_disabled.as_ref().map(map),
            thinking: config.thinking.as_ref().map(map),
            context_window: config.context_window,
            stream_chunk_timeout: config.stream_chunk_timeout,
            max_retries: config.max_retries,
            max_concurrent_calls: config.max_concurrent_calls,
            max_answer_bytes: config.max_answer_bytes,
            pricing: config.pricing.as_ref().map(Pricing::from),
            fallback_models: config.fallback_models.clone(),
            api_key,
            extra,
            fault: config
                .require_resolved()
                .err()
                .map(|missing| missing.to_string()),
        }
    }
}

impl ModelCatalog {
    /// Creates the catalog of the configured entries.
    pub fn from_config(models: &[ModelConfig], clock: Arc<dyn Clock>) -> Self {
        Self::new(models.iter().map(ModelEntry::from), clock)
    }
}

impl From<&LlmCallConfig> for RetryPolicy {
    fn from(config: &LlmCallConfig) -> Self {
        Self {
            max_attempts: config.retry_max_attempts,
            base: Duration::from_millis(config.retry_base_delay_ms),
            cap: Duration::from_millis(config.retry_cap_delay_ms),
            burst_base: Duration::from_millis(config.burst_retry_base_delay_ms),
            ..Self::default()
        }
    }
}

impl From<&CircuitBreakerConfig> for BreakerPolicy {
    fn from(config: &CircuitBreakerConfig) -> Self {
        Self {
            failure_threshold: config.failure_threshold,
            recovery: Duration::from_secs(config.recovery_timeout_sec),
        }
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;
    use crate::ModelErrorKind;
    use deerflow_core::clock::SystemClock;

    fn config(value: Value) -> ModelConfig {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn entry_keeps_every_key_and_hides_its_api_key() {
        let entry = ModelEntry::from(&config(json!({
            "name": "a", "use": "openai", "model": "m", "api_key": "sk-canary", "temperature": 1, "use_responses_api": true,
            "context_window": 9, "pricing": {"currency": "EUR"}, "thinking": {"type": "enabled"}, "supports_vision": true,
        })));
        assert_eq!(
            entry.api_key.as_ref().map(ExposeSecret::expose_secret),
            Some("sk-canary")
        );
        assert_eq!(
            json!(entry.extra),
            json!({"temperature": 1, "use_responses_api": true})
        );
        assert_eq!(json!(entry.thinking), json!({"type": "enabled"}));
        assert!(entry.supports_vision && entry.fault.is_none());
        assert_eq!(
            (
                entry.context_window,
                entry.pricing.unwrap().currency.as_str()
            ),
            (Some(9), "EUR")
        );
    }

    #[test]
    fn policy_defaults_match_the_configuration() {
        assert_eq!(
            RetryPolicy::from(&LlmCallConfig::default()),
            RetryPolicy::default()
        );
        assert_eq!(
            BreakerPolicy::from(&CircuitBreakerConfig::default()),
            BreakerPolicy::default()
        );
    }

    #[test]
    fn invalid_entry_returns_its_error_on_get() {
        let mut entry = ModelEntry::new("a", "scripted", "m");
        entry.fault = Some("`$KEY` has no value".to_owned());
        let error = ModelCatalog::new([entry], Arc::new(SystemClock))
            .get("a")
            .unwrap_err();
        assert_eq!(
            (error.kind, error.message.as_str()),
            (ModelErrorKind::Config, "`$KEY` has no value")
        );
    }
}
