//! Endpoint of an entry: address, keys, headers and timeouts. Parsed and checked once.

use std::time::Duration;

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::credentials::Credentials;
use crate::{ModelEntry, ProviderKind};

/// Default timeout between two chunks of a stream.
const DEFAULT_IDLE: Duration = Duration::from_secs(240);
/// Default timeout of the response headers.
const DEFAULT_FIRST_BYTE: Duration = Duration::from_secs(600);
/// Maximum duration of an answer.
const MAX_ANSWER_TIME: Duration = Duration::from_secs(3600);
/// Maximum size of a streamed answer, in bytes. Events are many times larger than the text they
/// carry.
const MAX_STREAM_BYTES: usize = 128 << 20;

/// Defaults of a provider's endpoint.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProviderDefaults {
    /// Address of the provider's server. `None` if users run their own.
    pub(crate) base_url: Option<&'static str>,
    /// `true` if that server accepts calls without a key.
    pub(crate) allows_anonymous: bool,
    /// Names under which an entry may set the key.
    pub(crate) key_names: &'static [&'static str],
    /// Environment variable that usually holds the key, for error texts.
    pub(crate) key_variable: &'static str,
}

/// Endpoint of a server.
#[derive(Debug)]
pub(crate) struct Endpoint {
    base: Url,
    /// Headers that the entry configures.
    pub(crate) headers: HeaderMap,
    /// Query parameters that the entry configures.
    pub(crate) query: Vec<(String, String)>,
    pub(crate) credentials: Credentials,
    pub(crate) limits: Limits,
}

/// Timeouts and size limit of one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Timeout of the response headers.
    pub(crate) first_byte: Duration,
    /// Timeout between two chunks.
    pub(crate) idle: Duration,
    /// Timeout of the whole answer.
    pub(crate) whole: Duration,
    /// Maximum size of a streamed answer, in bytes.
    pub(crate) streamed: usize,
}

impl Endpoint {
    /// Parses the endpoint of an entry. The error states what to change in the entry.
    pub(crate) fn read(entry: &ModelEntry, defaults: ProviderDefaults) -> Result<Self, String> {
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
        .or(defaults.base_url)
        .ok_or(
            "it needs a `base_url`: the address of its server, such as http://127.0.0.1:8000/v1",
        )?;
        let base = Url::parse(address.trim())
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && !url.cannot_be_a_base());
        let base = base.ok_or("its `base_url` is not an http or https address")?;
        let credentials = Credentials::read(entry, defaults.key_names);
        if credentials.is_empty()
            && !defaults.allows_anonymous
            && Some(address) == defaults.base_url
        {
            let command = ProviderKind::parse(&entry.use_path)
                .ok()
                .and_then(ProviderKind::sign_in_command);
            let file = command.map(|command| {
                format!(", or a `credentials_path`: the file that `{command}` writes")
            });
            return Err(format!(
                "it needs an `api_key`, for instance `api_key: ${}`{}",
                defaults.key_variable,
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
            query: query(entry)?,
            credentials,
            limits: limits(entry)?,
        })
    }

    /// Returns the address with `path` appended. Segments that the address already ends with are
    /// not repeated.
    pub(crate) fn url(&self, path: &[&str]) -> Url {
        let mut url = self.base.clone();
        let there: Vec<&str> = self
            .base
            .path()
            .split('/')
            .filter(|segment| !segment.is_empty())
            .collect();
        let overlap = (0..=path.len())
            .rev()
            .find(|length| there.ends_with(&path[..*length]))
            .unwrap_or(0);
        // An address with a host, which was checked, can be extended.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(&path[overlap..]);
        }
        url
    }

    /// Returns the server's host, and its port if it is not the default one.
    pub(crate) fn server(&self) -> String {
        let host = self.base.host_str().unwrap_or_default();
        self.base
            .port()
            .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Reports whether the server is `host`.
    pub(crate) fn is_at(&self, host: &str) -> bool {
        self.base.host_str() == Some(host)
    }

    /// Returns `text` without any key, in case a server repeats it.
    pub(crate) fn redact(&self, text: &str) -> String {
        self.credentials
            .all()
            .fold(text.to_owned(), |text, key| key.redact(&text))
    }
}

fn query(entry: &ModelEntry) -> Result<Vec<(String, String)>, String> {
    let query = entry.extra.get("default_query").and_then(Value::as_object);
    let pairs = query.into_iter().flatten().map(|(name, value)| {
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            _ => {
                return Err(format!(
                    "its query parameter {name:?} must be a text, a number or a boolean"
                ));
            }
        };
        Ok((name.clone(), value))
    });
    pairs.collect()
}

fn limits(entry: &ModelEntry) -> Result<Limits, String> {
    let seconds = |key: &str, value: f64| {
        let time = Duration::try_from_secs_f64(value)
            .ok()
            .filter(|time| !time.is_zero());
        time.ok_or_else(|| format!("its `{key}` must be a number of seconds above 0"))
    };
    let number = |key: &str| entry.extra.get(key).and_then(Value::as_f64);
    let first_byte = [
        "timeout",
        "request_timeout",
        "default_request_timeout",
        "read_timeout",
    ];
    let first_byte = first_byte
        .into_iter()
        .find_map(|key| Some((key, number(key)?)));
    let idle = entry
        .stream_chunk_timeout
        .or_else(|| number("stream_chunk_timeout"));
    Ok(Limits {
        first_byte: first_byte
            .map_or(Ok(DEFAULT_FIRST_BYTE), |(key, value)| seconds(key, value))?,
        idle: idle.map_or(Ok(DEFAULT_IDLE), |value| {
            seconds("stream_chunk_timeout", value)
        })?,
        whole: MAX_ANSWER_TIME,
        streamed: MAX_STREAM_BYTES,
    })
}

/// Returns a header that is marked as sensitive, so that its value is not logged.
pub(crate) fn header(name: &str, value: &str) -> Option<(HeaderName, HeaderValue)> {
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
            .ok_or_else(|| format!("the value of its header {name:?} is not a string"))?;
        let (name, value) =
            header(name, value).ok_or_else(|| format!("its header {name:?} cannot be sent"))?;
        headers.insert(name, value);
    }
    Ok(headers)
}

#[cfg(test)]
#[path = "endpoint_tests.rs"]
mod tests;
