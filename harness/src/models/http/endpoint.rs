//! What an entry says about the way to its server: address, keys, headers, patience. Read and checked once.

use std::time::Duration;

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};

use super::credentials::Credentials;
use crate::models::{ModelEntry, ProviderKind};

/// The patience with a silent stream when the entry does not say.
const DEFAULT_IDLE: Duration = Duration::from_secs(240);
/// The patience with a server that has not begun to answer.
const DEFAULT_FIRST_BYTE: Duration = Duration::from_secs(600);
/// No answer takes longer than this, however busy its stream is.
const WHOLE_ANSWER: Duration = Duration::from_secs(3600);
/// No streamed answer is longer than this. The events around its words weigh many times what they say.
const LONGEST_STREAM: usize = 128 << 20;

/// What is known of a provider's servers before the entry is read.
#[derive(Debug, Clone, Copy)]
pub(in crate::models) struct Site {
    /// Where its own server lives; none where everybody runs their own.
    pub(in crate::models) base_url: Option<&'static str>,
    /// Whether that server takes calls without a key.
    pub(in crate::models) open: bool,
    /// By which names an entry gives the key.
    pub(in crate::models) key_names: &'static [&'static str],
    /// The variable that people keep it in.
    pub(in crate::models) key_variable: &'static str,
}

/// The way to the server.
#[derive(Debug)]
pub(in crate::models) struct Endpoint {
    base: Url,
    /// The entry's own headers.
    pub(in crate::models) headers: HeaderMap,
    /// Further parts of the address.
    pub(in crate::models) query: Option<Map<String, Value>>,
    pub(in crate::models) credentials: Credentials,
    pub(in crate::models) limits: Limits,
}

/// How long each wait may last, and how much may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::models) struct Limits {
    /// Until the answer begins.
    pub(in crate::models) first_byte: Duration,
    /// Between two chunks.
    pub(in crate::models) idle: Duration,
    /// For everything.
    pub(in crate::models) whole: Duration,
    /// Bytes of one streamed answer.
    pub(in crate::models) streamed: usize,
}

impl Endpoint {
    /// Reads the entry; the error says what to change in it.
    pub(in crate::models) fn read(entry: &ModelEntry, site: Site) -> Result<Self, String> {
        let text = |keys: &[&str]| {
            keys.iter()
                .find_map(|key| entry.extra.get(*key)?.as_str())
                .filter(|text| !text.trim().is_empty())
        };
        let address = text(&[
            "base_url",
            "api_base",
            "openai_api_base",
            "anthropic_api_url",
        ])
        .or(site.base_url)
        .ok_or(
            "it needs a `base_url`: the address of its server, such as http://127.0.0.1:8000/v1",
        )?;
        let base = Url::parse(address.trim())
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && !url.cannot_be_a_base());
        let base = base.ok_or("its `base_url` is not an http or https address")?;
        let credentials = Credentials::read(entry, site.key_names);
        if credentials.is_empty() && !site.open && Some(address) == site.base_url {
            let command = ProviderKind::parse(&entry.use_path)
                .ok()
                .and_then(ProviderKind::sign_in_command);
            let file = command.map(|command| {
                format!(", or a `credentials_path`: the file that `{command}` writes")
            });
            return Err(format!(
                "it needs an `api_key`, for instance `api_key: ${}`{}",
                site.key_variable,
                file.unwrap_or_default()
            ));
        }
        if credentials
            .all()
            .any(|key| HeaderValue::from_str(key.text()).is_err())
        {
            return Err("its `api_key` has characters that cannot be sent".to_owned());
        }
        Ok(Self {
            base,
            headers: headers(entry)?,
            query: query(entry),
            credentials,
            limits: limits(entry)?,
        })
    }

    /// The address with `path` behind it, as far as it does not stand there already.
    pub(in crate::models) fn url(&self, path: &[&str]) -> Url {
        let mut url = self.base.clone();
        let there: Vec<&str> = self
            .base
            .path()
            .split('/')
            .filter(|segment| !segment.is_empty())
            .collect();
        let known = (0..=path.len())
            .rev()
            .find(|length| there.ends_with(&path[..*length]))
            .unwrap_or(0);
        // An address with a host, as all are here, can be extended.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(&path[known..]);
        }
        url
    }

    /// The server's name, and its port where it has one of its own.
    pub(in crate::models) fn server(&self) -> String {
        let host = self.base.host_str().unwrap_or_default();
        self.base
            .port()
            .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Whether the server is `host`.
    pub(in crate::models) fn is_at(&self, host: &str) -> bool {
        self.base.host_str() == Some(host)
    }

    /// `text` without any key, should a server repeat it.
    pub(in crate::models) fn redact(&self, text: &str) -> String {
        self.credentials
            .all()
            .fold(text.to_owned(), |text, key| key.redact(&text))
    }
}

fn query(entry: &ModelEntry) -> Option<Map<String, Value>> {
    entry.extra.get("default_query")?.as_object().cloned()
}

fn limits(entry: &ModelEntry) -> Result<Limits, String> {
    let seconds = |key: &str, value: f64| {
        let time = Duration::try_from_secs_f64(value)
            .ok()
            .filter(|time| !time.is_zero());
        time.ok_or_else(|| format!("its `{key}` must be a number of seconds above 0"))
    };
    let number = |key: &str| entry.extra.get(key).and_then(Value::as_f64);
    let patience = ["timeout", "request_timeout", "default_request_timeout"]
        .into_iter()
        .find_map(|key| Some((key, number(key)?)));
    let idle = entry
        .stream_chunk_timeout
        .or_else(|| number("stream_chunk_timeout"));
    Ok(Limits {
        first_byte: patience.map_or(Ok(DEFAULT_FIRST_BYTE), |(key, value)| seconds(key, value))?,
        idle: idle.map_or(Ok(DEFAULT_IDLE), |value| {
            seconds("stream_chunk_timeout", value)
        })?,
        whole: WHOLE_ANSWER,
        streamed: LONGEST_STREAM,
    })
}

/// A header whose value is kept out of logs.
pub(in crate::models) fn header(name: &str, value: &str) -> Option<(HeaderName, HeaderValue)> {
    let mut value = HeaderValue::from_str(value).ok()?;
    value.set_sensitive(true);
    Some((HeaderName::from_bytes(name.as_bytes()).ok()?, value))
}

fn headers(entry: &ModelEntry) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    let organization = ["organization", "openai_organization"]
        .iter()
        .find_map(|key| entry.extra.get(*key));
    let organization = organization.map(|value| ("openai-organization", value));
    let own = entry
        .extra
        .get("default_headers")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    for (name, value) in organization
        .into_iter()
        .chain(own.map(|(name, value)| (name.as_str(), value)))
    {
        let value = value
            .as_str()
            .ok_or_else(|| format!("the value of its header {name:?} is not a text"))?;
        let (name, value) =
            header(name, value).ok_or_else(|| format!("its header {name:?} cannot be sent"))?;
        headers.insert(name, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SITE: Site = Site {
        base_url: Some("https://h.test/v1"),
        open: false,
        key_names: &["api_key"],
        key_variable: "H_KEY",
    };
    const ANYWHERE: Site = Site {
        base_url: None,
        ..SITE
    };

    fn read(extra: Value, site: Site) -> Result<Endpoint, String> {
        let entry = ModelEntry {
            extra: extra.as_object().unwrap().clone(),
            ..ModelEntry::new("e", "openai", "m")
        };
        Endpoint::read(&entry, site)
    }

    #[test]
    fn addresses_are_completed() {
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
                read(json!({"base_url": base}), SITE)
                    .unwrap()
                    .url(&["chat", "completions"])
                    .as_str(),
                expected
            );
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (extra, site, named) in [
            (json!({}), SITE, "H_KEY"),
            (json!({}), ANYWHERE, "base_url"),
            (json!({"base_url": "ftp://x"}), SITE, "http"),
            (
                json!({"base_url": "http://x", "api_key": "a\nb"}),
                SITE,
                "characters",
            ),
            (
                json!({"base_url": "http://x", "api_keys": ["fine", "a\nb"]}),
                SITE,
                "characters",
            ),
            (
                json!({"base_url": "http://x", "timeout": -1}),
                SITE,
                "timeout",
            ),
            (
                json!({"base_url": "http://x", "stream_chunk_timeout": 0}),
                SITE,
                "stream_chunk_timeout",
            ),
            (
                json!({"base_url": "http://x", "default_headers": {"a b": "c"}}),
                SITE,
                "a b",
            ),
        ] {
            assert!(read(extra, site).unwrap_err().contains(named), "{named}");
        }
    }

    #[test]
    fn keys_are_never_shown() {
        let endpoint = read(
            json!({"api_key": "sk-canary", "api_keys": ["sk-second"]}),
            SITE,
        )
        .unwrap();
        assert!(!format!("{endpoint:?}").contains("canary"));
        assert_eq!(
            endpoint.redact("bad key sk-canary or sk-second!"),
            "bad key *** or ***!"
        );
        assert_eq!(
            read(json!({"api_key": "x"}), SITE)
                .unwrap()
                .redact("unexpected end"),
            "unexpected end"
        );
        assert_eq!(
            endpoint.limits,
            Limits {
                first_byte: DEFAULT_FIRST_BYTE,
                idle: DEFAULT_IDLE,
                whole: WHOLE_ANSWER,
                streamed: LONGEST_STREAM
            }
        );
    }
}
