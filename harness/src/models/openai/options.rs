//! What an entry says about the way to its server: address, key, headers, patience. Read and checked once.

use std::time::Duration;

use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::dialect::Dialect;
use crate::models::ModelEntry;

/// The patience with a silent stream when the entry does not say.
const DEFAULT_IDLE: Duration = Duration::from_secs(240);
/// The patience with a server that has not begun to answer.
const DEFAULT_FIRST_BYTE: Duration = Duration::from_secs(600);
/// No answer takes longer than this, however busy its stream is.
const WHOLE_ANSWER: Duration = Duration::from_secs(3600);

const SHORTEST_SECRET: usize = 8;

/// The way to the server.
#[derive(Debug, Clone)]
pub(super) struct Options {
    pub(super) url: Url,
    /// With the key in it, marked sensitive.
    pub(super) headers: HeaderMap,
    /// To keep it out of messages.
    pub(super) key: Option<SecretString>,
    pub(super) limits: Limits,
}

/// How long each wait may last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// Until the answer begins.
    pub(super) first_byte: Duration,
    /// Between two chunks.
    pub(super) idle: Duration,
    /// For everything.
    pub(super) whole: Duration,
}

impl Options {
    /// Reads the entry; the error says what to change in it.
    pub(super) fn read(entry: &ModelEntry, dialect: Dialect) -> Result<Self, String> {
        let text = |keys: &[&str]| keys.iter().find_map(|key| entry.extra.get(*key)?.as_str()).filter(|text| !text.trim().is_empty());
        let address = text(&["base_url", "api_base", "openai_api_base"])
            .or(dialect.default_base_url)
            .ok_or("it needs a `base_url`: the address of its server, such as http://127.0.0.1:8000/v1")?;
        let url = chat_url(address).ok_or_else(|| "its `base_url` is not an http or https address".to_owned())?;
        let written_key = text(&["api_key", "openai_api_key", "deepseek_api_key", "vllm_api_key"]);
        let key = entry.api_key.clone().or_else(|| written_key.map(SecretString::from));
        if key.is_none() && Some(address) == dialect.default_base_url {
            return Err("it needs an `api_key`, for instance `api_key: $OPENAI_API_KEY`".to_owned());
        }
        let seconds = |key: &str, value: Option<f64>, default| match value {
            None => Ok(default),
            Some(seconds) => Duration::try_from_secs_f64(seconds)
                .ok()
                .filter(|time| !time.is_zero())
                .ok_or_else(|| format!("its `{key}` must be a number of seconds above 0")),
        };
        let number = |key: &str| entry.extra.get(key).and_then(Value::as_f64);
        let patience = ["timeout", "request_timeout", "default_request_timeout"].into_iter().find_map(|key| Some((key, number(key)?)));
        let limits = Limits {
            first_byte: patience.map_or(Ok(DEFAULT_FIRST_BYTE), |(key, value)| seconds(key, Some(value), DEFAULT_FIRST_BYTE))?,
            idle: seconds("stream_chunk_timeout", entry.stream_chunk_timeout.or_else(|| number("stream_chunk_timeout")), DEFAULT_IDLE)?,
            whole: WHOLE_ANSWER,
        };
        Ok(Self { url, headers: headers(entry, key.as_ref())?, key, limits })
    }

    /// `text` without the key, should a server repeat it. Short keys are placeholders of servers that want none.
    pub(super) fn redact(&self, text: &str) -> String {
        match self.key.as_ref().map(ExposeSecret::expose_secret).filter(|key| key.len() >= SHORTEST_SECRET) {
            Some(key) => text.replace(key, "***"),
            None => text.to_owned(),
        }
    }
}

fn chat_url(address: &str) -> Option<Url> {
    let mut url = Url::parse(address.trim()).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    if !url.path().trim_end_matches('/').ends_with("/chat/completions") {
        url.path_segments_mut().ok()?.pop_if_empty().extend(["chat", "completions"]);
    }
    Some(url)
}

fn headers(entry: &ModelEntry, key: Option<&SecretString>) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    let mut set = |name: &str, value: &str| -> Option<()> {
        let mut value = HeaderValue::from_str(value).ok()?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_bytes(name.as_bytes()).ok()?, value);
        Some(())
    };
    if let Some(key) = key {
        let bearer = format!("Bearer {}", key.expose_secret().trim());
        set(AUTHORIZATION.as_str(), &bearer).ok_or("its `api_key` has characters that cannot be sent")?;
    }
    if let Some(organization) = ["organization", "openai_organization"].iter().find_map(|key| entry.extra.get(*key)?.as_str()) {
        set("openai-organization", organization).ok_or("its `organization` has characters that cannot be sent")?;
    }
    for (name, value) in entry.extra.get("default_headers").and_then(Value::as_object).into_iter().flatten() {
        let value = value.as_str().ok_or_else(|| format!("the value of its header {name:?} is not a text"))?;
        set(name, value).ok_or_else(|| format!("its header {name:?} cannot be sent"))?;
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(extra: Value, dialect: Dialect) -> Result<Options, String> {
        let entry = ModelEntry { extra: extra.as_object().unwrap().clone(), ..ModelEntry::new("e", "openai", "m") };
        Options::read(&entry, dialect)
    }

    #[test]
    fn addresses_are_completed() {
        for (base, expected) in [
            ("http://h:1/v1", "http://h:1/v1/chat/completions"),
            ("http://h:1/v1/", "http://h:1/v1/chat/completions"),
            ("http://h", "http://h/chat/completions"),
            ("http://h/x/chat/completions", "http://h/x/chat/completions"),
            ("https://h/v1?version=2", "https://h/v1/chat/completions?version=2"),
        ] {
            assert_eq!(read(json!({"base_url": base}), Dialect::OPENAI).unwrap().url.as_str(), expected);
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (extra, dialect, named) in [
            (json!({}), Dialect::OPENAI, "api_key"),
            (json!({}), Dialect::VLLM, "base_url"),
            (json!({"base_url": "ftp://x"}), Dialect::OPENAI, "http"),
            (json!({"base_url": "http://x", "api_key": "a\nb"}), Dialect::OPENAI, "characters"),
            (json!({"base_url": "http://x", "timeout": -1}), Dialect::OPENAI, "timeout"),
            (json!({"base_url": "http://x", "stream_chunk_timeout": 0}), Dialect::OPENAI, "stream_chunk_timeout"),
            (json!({"base_url": "http://x", "default_headers": {"a b": "c"}}), Dialect::OPENAI, "a b"),
        ] {
            assert!(read(extra, dialect).unwrap_err().contains(named), "{named}");
        }
    }

    #[test]
    fn the_key_is_sent_but_never_shown() {
        let options = read(json!({"api_key": "sk-canary"}), Dialect::OPENAI).unwrap();
        assert_eq!(options.headers[AUTHORIZATION], "Bearer sk-canary");
        assert!(!format!("{options:?}").contains("canary"));
        assert_eq!(options.redact("bad key sk-canary!"), "bad key ***!");
        let placeholder = read(json!({"api_key": "x"}), Dialect::OPENAI).unwrap();
        assert_eq!(placeholder.redact("unexpected end"), "unexpected end");
        assert_eq!(options.limits, Limits { first_byte: DEFAULT_FIRST_BYTE, idle: DEFAULT_IDLE, whole: WHOLE_ANSWER });
    }
}
