//! Tests of environment variables that override or complete the file.

use super::*;

#[test]
fn environment_overrides_file() {
    let text = "config_version: 34\ndatabase: {backend: memory, pool_size: 3}\n";
    let variables = [
        ("DEERFLOW_DATABASE__BACKEND", "sqlite"),
        ("DEERFLOW_TITLE__MAX_WORDS", "9"),
        ("DEERFLOW_MODELS", "[{name=a, use=scripted, model=m}]"),
        ("DEERFLOW_WRITE_FILE_MAX_BYTES", "5"),
        ("DEERFLOW_PORT_8001_TCP", "tcp://10.0.0.1:8001"),
        ("DEERFLOW_", "x"),
        ("DEERFLOW_TITLE__", "x"),
    ];
    let loaded = load_with(text, &variables).unwrap();
    assert_eq!(loaded.warnings, []);
    assert_eq!(loaded.config.database.backend, DatabaseBackend::Sqlite);
    assert_eq!(loaded.config.database.pool_size, 3);
    assert_eq!(loaded.config.title.max_words, 9);
    assert_eq!(loaded.config.models[0].name, "a");
}

#[test]
fn invalid_override_error_names_variable() {
    let cases = [
        (
            ("DEERFLOW_TITLE__MAX_WORDS", "50"),
            "environment variable DEERFLOW_TITLE__MAX_WORDS: `title.max_words` is 50, allowed: 1 to 20",
        ),
        (
            ("DEERFLOW_TITLE__ENABLED", "perhaps"),
            "environment variable DEERFLOW_TITLE__ENABLED: `title.enabled` is \"perhaps\", allowed: true or false",
        ),
    ];
    for (variable, expected) in cases {
        let error = load_with("title: {max_words: 5}\n", &[variable]).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    let loaded = load_with("config_version: 34\n", &[("DEERFLOW_TITLE__MAX_WORD", "5")]).unwrap();
    assert_eq!(
        loaded.warnings[0].to_string(),
        "environment variable DEERFLOW_TITLE__MAX_WORD: `title.max_word` is not a known key and has no effect; \
         did you mean `max_words`?"
    );
}

#[test]
fn redis_url_defaults_to_environment() {
    let address = |text: &str, variables: &[(&str, &str)]| {
        let config = load_with(text, variables).unwrap().config;
        config
            .stream_bridge
            .redis_url
            .unwrap()
            .expose_secret()
            .to_owned()
    };
    let text = "stream_bridge: {type: redis}\n";
    assert_eq!(address(text, &[("REDIS_URL", "redis://b")]), "redis://b");
    let both = [
        ("REDIS_URL", "redis://b"),
        ("DEER_FLOW_STREAM_BRIDGE_REDIS_URL", "redis://a"),
    ];
    assert_eq!(address(text, &both), "redis://a");
    assert_eq!(
        address(
            "stream_bridge: {type: redis, redis_url: 'redis://c'}\n",
            &both
        ),
        "redis://c"
    );
    assert!(refusal(text).contains("`stream_bridge.redis_url` is empty"));
}
