//! Tests of defaults, bounds and redaction of the typed configuration.

use serde_json::json;

use super::*;

fn parse(value: Value) -> AppConfig {
    serde_json::from_value(value).unwrap()
}

fn violation_messages(value: Value) -> Vec<String> {
    parse(value)
        .violations()
        .iter()
        .map(Violation::to_string)
        .collect()
}

#[test]
fn empty_config_equals_defaults_and_is_valid() {
    assert_eq!(
        format!("{:?}", parse(json!({}))),
        format!("{:?}", AppConfig::default())
    );
    assert!(AppConfig::default().violations().is_empty());
}

#[test]
fn unknown_model_keys_are_preserved_for_the_provider() {
    let config = parse(json!({"models": [
        {"name": "a", "use": "openai", "model": "m", "supports_vision": true, "temperature": 0.5}
    ]}));
    let model = config.model(None).unwrap();
    assert!(model.supports_vision);
    assert_eq!(model.extra.keys().collect::<Vec<_>>(), ["temperature"]);
    assert!(config.model(Some("b")).is_none());
}

#[test]
fn violations_name_key_and_allowed_values() {
    let cases = [
        (
            json!({"title": {"max_words": 21}}),
            "`title.max_words` is 21, allowed: 1 to 20",
        ),
        (
            json!({"title": {"max_chars": 9}}),
            "`title.max_chars` is 9, allowed: 10 to 200",
        ),
        (
            json!({"suggestions": {"max_suggestions": 6}}),
            "`suggestions.max_suggestions` is 6, allowed: 1 to 5",
        ),
        (
            json!({"max_recursion_limit": 0}),
            "`max_recursion_limit` is 0, allowed: at least 1",
        ),
        (
            json!({"run_ownership": {"lease_seconds": 4}}),
            "`run_ownership.lease_seconds` is 4, allowed: at least 5",
        ),
        (
            json!({"llm_call": {"retry_max_attempts": 0}}),
            "`llm_call.retry_max_attempts` is 0, allowed: at least 1",
        ),
        (
            json!({"sandbox": {"replicas": 0}}),
            "`sandbox.replicas` is 0, allowed: at least 1",
        ),
        (
            json!({"sandbox": {"acquire_timeout": 0}}),
            "`sandbox.acquire_timeout` is 0, allowed: at least 1",
        ),
        (
            json!({"sandbox": {"ownership": {"ttl_multiplier": 1.5}}}),
            "`sandbox.ownership.ttl_multiplier` is 1.5, allowed: at least 2",
        ),
        (
            json!({"memory": {"shutdown_flush_timeout_seconds": 301}}),
            "`memory.shutdown_flush_timeout_seconds` is 301, allowed: 1 to 300",
        ),
        (
            json!({"summarization": {"trigger": [{"type": "fraction", "value": 2}]}}),
            "`summarization.trigger[0].value` is 2, allowed: a share above 0 and up to 1",
        ),
        (
            json!({"database": {"pool_recycle": 0}}),
            "`database.pool_recycle` is 0, allowed: at least 1",
        ),
        (
            json!({"database": {"checkpoint_delta": {"snapshot_frequency": 0}}}),
            "`database.checkpoint_delta.snapshot_frequency` is 0, allowed: at least 1",
        ),
        (
            json!({"database": {"backend": "postgres"}}),
            "`database.postgres_url` is empty, allowed: an address, since `backend` is postgres",
        ),
        (
            json!({"stream_bridge": {"type": "redis", "redis_url": ""}}),
            "`stream_bridge.redis_url` is empty, allowed: an address (here or in REDIS_URL), since `type` is redis",
        ),
        (
            json!({"models": [{"name": "a", "use": "u", "model": "m"}, {"name": "a", "use": "u", "model": "m"}]}),
            "`models[1].name` is `a` (duplicate), allowed: unique names",
        ),
        (
            json!({"models": [{"name": "a", "use": "u", "model": "m", "context_window": 0}]}),
            "`models[0].context_window` is 0, allowed: at least 1",
        ),
        (
            json!({"models": [{"name": "a", "use": "u", "model": "m", "fallback_models": ["a", "b"]}]}),
            "`models[0].fallback_models` is `b`, allowed: names of other entries under `models`",
        ),
        (
            json!({"models": [{"name": "a", "use": "u", "model": "m", "pricing": {"output_per_million": -1}}]}),
            "`models[0].pricing.output_per_million` is -1, allowed: at least 0",
        ),
        (
            json!({"runs": {"idle_limit_seconds": 0}}),
            "`runs.idle_limit_seconds` is 0, allowed: at least 1",
        ),
    ];
    for (value, expected) in cases {
        assert_eq!(violation_messages(value), [expected]);
    }
}

#[test]
fn debug_output_contains_no_secrets() {
    let config = parse(json!({
        "models": [{"name": "a", "use": "u", "model": "m", "api_key": "canary-1"}],
        "tools": [{"name": "t", "group": "g", "use": "u", "api_key": "canary-2"}],
        "database": {"postgres_url": "postgres://u:canary-3@host/db"},
        "stream_bridge": {"redis_url": "redis://:canary-4@host"},
        "sandbox": {"environment": {"TOKEN": "canary-5"}, "provisioner_api_key": "canary-6"},
        "channels": {"slack": {"bot_token": "canary-7"}},
        "auth": {"oidc": {"providers": {"x": {"client_secret": "canary-8"}}}},
    }));
    let text = format!("{config:?}");
    assert!(!text.contains("canary"), "{text}");
}

#[test]
fn entry_with_missing_variable_is_rejected() {
    let config = parse(json!({"models": [{
        "name": "big", "use": "openai", "model": "m",
        "__unresolved": [{"key": "api_key", "variable": "BIG_KEY"}],
    }]}));
    assert_eq!(
        config.models[0].require_resolved().unwrap_err().to_string(),
        "model `big` needs the environment variable BIG_KEY (key `api_key`), which is not set"
    );
    assert!(
        ModelConfig::new("s", "scripted", "s")
            .require_resolved()
            .is_ok()
    );
}

#[test]
fn log_levels_are_case_insensitive() {
    for (text, level) in [
        ("INFO", LogLevel::Info),
        ("Warning", LogLevel::Warning),
        ("critical", LogLevel::Error),
    ] {
        assert_eq!(parse(json!({"log_level": text})).log_level, level);
    }
}

#[test]
fn run_event_days_requires_journal_in_database() {
    let messages = |backend: &str| {
        violation_messages(
            json!({ "retention": { "run_event_days": 30 }, "run_events": { "backend": backend } }),
        )
    };
    assert_eq!(messages("db"), [""; 0]);
    for backend in ["jsonl", "memory"] {
        let messages = messages(backend);
        assert!(
            messages.len() == 1
                && messages[0].contains("run_event_days")
                && messages[0].contains("run_events.backend"),
            "{messages:?}"
        );
    }
}
