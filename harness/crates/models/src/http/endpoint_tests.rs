//! Tests of the URL and the key of an entry.

use serde_json::json;

use super::*;

const DEFAULTS: ProviderDefaults = ProviderDefaults {
    base_url: Some("https://h.test/v1"),
    allows_anonymous: false,
    key_names: &["api_key"],
    key_variable: "H_KEY",
};
const NO_DEFAULT_SERVER: ProviderDefaults = ProviderDefaults {
    base_url: None,
    ..DEFAULTS
};

fn read(extra: Value, defaults: ProviderDefaults) -> Result<Endpoint, String> {
    let entry = ModelEntry {
        extra: extra.as_object().unwrap().clone(),
        ..ModelEntry::new("e", "openai", "m")
    };
    Endpoint::read(&entry, defaults)
}

#[test]
fn url_appends_missing_path_segments() {
    for (base, expected) in [
        ("http://h:1/v1", "http://h:1/v1/chat/completions"),
        ("http://h:1/v1/", "http://h:1/v1/chat/completions"),
        ("http://h", "http://h/chat/completions"),
        ("http://h/x/chat/completions", "http://h/x/chat/completions"),
        ("http://h/x/chat", "http://h/x/chat/completions"),
        (
            "https://h/v1?version=2",
            "https://h/v1/chat/completions?version=2",
        ),
    ] {
        assert_eq!(
            read(json!({"base_url": base}), DEFAULTS)
                .unwrap()
                .url(&["chat", "completions"])
                .as_str(),
            expected
        );
    }
}

#[test]
fn invalid_entry_error_names_the_key() {
    for (extra, defaults, named) in [
        (json!({}), DEFAULTS, "H_KEY"),
        (json!({}), NO_DEFAULT_SERVER, "base_url"),
        (json!({"base_url": "ftp://x"}), DEFAULTS, "http"),
        (
            json!({"base_url": "http://x", "api_key": "a\nb"}),
            DEFAULTS,
            "characters",
        ),
        (
            json!({"base_url": "http://x", "api_keys": ["fine", "a\nb"]}),
            DEFAULTS,
            "characters",
        ),
        (
            json!({"base_url": "http://x", "timeout": -1}),
            DEFAULTS,
            "timeout",
        ),
        (
            json!({"base_url": "http://x", "stream_chunk_timeout": 0}),
            DEFAULTS,
            "stream_chunk_timeout",
        ),
        (
            json!({"base_url": "http://x", "default_headers": {"a b": "c"}}),
            DEFAULTS,
            "a b",
        ),
    ] {
        assert!(
            read(extra, defaults).unwrap_err().contains(named),
            "{named}"
        );
    }
}

#[test]
fn keys_are_redacted() {
    let endpoint = read(
        json!({"api_key": "sk-canary", "api_keys": ["sk-second"]}),
        DEFAULTS,
    )
    .unwrap();
    assert!(!format!("{endpoint:?}").contains("canary"));
    assert_eq!(
        endpoint.redact("bad key sk-canary or sk-second!"),
        "bad key *** or ***!"
    );
    assert_eq!(
        read(json!({"api_key": "x"}), DEFAULTS)
            .unwrap()
            .redact("unexpected end"),
        "unexpected end"
    );
    assert_eq!(
        endpoint.limits,
        Limits {
            first_byte: DEFAULT_FIRST_BYTE,
            idle: DEFAULT_IDLE,
            whole: MAX_ANSWER_TIME,
            streamed: MAX_STREAM_BYTES
        }
    );
}
