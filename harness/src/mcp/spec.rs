//! Server entry of `extensions_config.json`, parsed and validated.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::oauth::OAuthSpec;
use crate::config::{Extensions, MCP_SERVERS};

/// Default startup timeout. A launcher may have to download the server first.
const DEFAULT_INIT_TIMEOUT: Duration = Duration::from_secs(60);
/// Default timeout of a call.
const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum timeout that can be configured, in seconds.
const MAX_TIMEOUT_SECS: f64 = 24.0 * 3600.0;

/// Validated configuration of a server.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    /// Name of the server: the prefix of its tools' names.
    pub name: String,
    /// Transport of the server.
    pub link: Link,
    /// `true` if the names of its tools begin with the name of the server.
    pub prefix: bool,
    /// Disabled tools, by the names that the server uses.
    pub hidden: BTreeSet<String>,
    /// Timeout of startup and handshake.
    pub init_limit: Duration,
    /// Timeout of a call.
    pub call_limit: Duration,
    /// Hash of name and entry, to detect changes.
    digest: [u8; 32],
}

/// Transport of a server.
#[derive(Debug, Clone)]
pub enum Link {
    /// Process that communicates over its standard streams.
    Stdio {
        /// Program to start.
        command: String,
        /// Arguments of the program.
        args: Vec<String>,
        /// Environment variables, in addition to the few that every server gets.
        env: Secrets,
        /// Working directory; by default a folder of the server.
        cwd: Option<PathBuf>,
        /// `true` to start in the thread's workspace. Agents write files there, and launchers may
        /// execute them.
        starts_in_workspace: bool,
    },
    /// Server over HTTP.
    Http {
        /// Address of the server.
        url: Url,
        /// Headers of every request.
        headers: HeaderMap,
        /// HTTP transport of the protocol.
        kind: HttpKind,
        /// OAuth settings, if the server needs a token.
        oauth: Option<Box<OAuthSpec>>,
    },
}

/// HTTP transports of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpKind {
    /// Streamable HTTP: one address that answers each message.
    Streamable,
    /// HTTP with SSE, of older protocol versions: an event stream, and a second address for the
    /// client's messages.
    Sse,
}

/// Named secret values. `Debug` prints only the names.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(BTreeMap<String, String>);

impl Secrets {
    /// Iterates over names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Error in a server entry. The texts contain no value of the entry, since any value may be a
/// secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// A field has the wrong type.
    #[error("`{0}` has the wrong type")]
    Shape(String),
    /// Unknown transport.
    #[error("`type` must be stdio, sse or http")]
    UnknownType,
    /// A field that the transport requires is missing.
    #[error("`{field}` is missing; a server of type {kind} requires it")]
    Missing {
        /// Name of the field.
        field: &'static str,
        /// Name of the transport.
        kind: &'static str,
    },
    /// Invalid address.
    #[error("`{0}` is not an http or https address")]
    Address(&'static str),
    /// Invalid header.
    #[error("`headers.{0}` is not a valid header or is reserved")]
    Header(String),
    /// Invalid timeout.
    #[error("`{0}` must be a number of seconds above 0 and at most 86400")]
    Limit(&'static str),
    /// Empty server name.
    #[error("the name of the server is empty")]
    Unnamed,
}

/// Entry as it is written. Unknown keys are ignored.
#[derive(Deserialize)]
#[serde(default)]
struct Entry {
    enabled: bool,
    #[serde(alias = "transport")]
    r#type: String,
    command: Option<String>,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    cwd: Option<PathBuf>,
    starts_in_workspace: bool,
    url: Option<String>,
    headers: BTreeMap<String, String>,
    oauth: Option<OAuthSpec>,
    tool_name_prefix: bool,
    tool_call_timeout: Option<f64>,
    session_init_timeout: Option<f64>,
    tools: BTreeMap<String, ToolEntry>,
}

#[derive(Deserialize)]
#[serde(default)]
struct ToolEntry {
    enabled: bool,
}

impl Default for Entry {
    fn default() -> Self {
        Self {
            enabled: true,
            r#type: "stdio".to_owned(),
            command: None,
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            starts_in_workspace: false,
            url: None,
            headers: BTreeMap::new(),
            oauth: None,
            tool_name_prefix: true,
            tool_call_timeout: None,
            session_init_timeout: None,
            tools: BTreeMap::new(),
        }
    }
}

impl Default for ToolEntry {
    fn default() -> Self {
        Self { enabled: true }
    }
}

impl ServerSpec {
    /// Parses the enabled servers, in the order of the file. `$VARIABLE` references must be
    /// resolved already.
    pub fn all(extensions: &Extensions) -> Vec<(String, Result<Self, SpecError>)> {
        let none = Map::new();
        let entries = extensions.section(MCP_SERVERS).unwrap_or(&none);
        let read = |(name, entry): (&String, &Value)| {
            Some((name.clone(), Self::read(name, entry).transpose()?))
        };
        entries.iter().filter_map(read).collect()
    }

    /// Parses one entry; `None` if it is disabled.
    ///
    /// # Errors
    /// An error if the entry is invalid.
    pub fn read(name: &str, written: &Value) -> Result<Option<Self>, SpecError> {
        if written.get("enabled") == Some(&Value::Bool(false)) {
            return Ok(None);
        }
        let entry: Entry = serde_path_to_error::deserialize(without_nulls(written))
            .map_err(|error| SpecError::Shape(error.path().to_string()))?;
        if !entry.enabled {
            return Ok(None);
        }
        if name.trim().is_empty() {
            return Err(SpecError::Unnamed);
        }
        let init_limit = limit(
            "session_init_timeout",
            entry.session_init_timeout,
            DEFAULT_INIT_TIMEOUT,
        )?;
        let call_limit = limit(
            "tool_call_timeout",
            entry.tool_call_timeout,
            DEFAULT_CALL_TIMEOUT,
        )?;
        let hidden = entry
            .tools
            .iter()
            .filter(|(_, tool)| !tool.enabled)
            .map(|(name, _)| name.clone())
            .collect();
        let digest = Sha256::new_with_prefix(name)
            .chain_update([0])
            .chain_update(written.to_string())
            .finalize()
            .into();
        let prefix = entry.tool_name_prefix;
        Ok(Some(Self {
            name: name.to_owned(),
            link: entry.link()?,
            prefix,
            hidden,
            init_limit,
            call_limit,
            digest,
        }))
    }

    /// `true` if both were parsed from the same name and entry.
    pub fn is_same(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Entry {
    fn link(self) -> Result<Link, SpecError> {
        let (kind, kind_name) = match self.r#type.as_str() {
            "stdio" => {
                let command = filled(self.command).ok_or(SpecError::Missing {
                    field: "command",
                    kind: "stdio",
                })?;
                let Self {
                    args,
                    env,
                    cwd,
                    starts_in_workspace,
                    ..
                } = self;
                return Ok(Link::Stdio {
                    command,
                    args,
                    env: Secrets(env),
                    cwd,
                    starts_in_workspace,
                });
            }
            "http" | "streamable_http" | "streamable-http" => (HttpKind::Streamable, "http"),
            "sse" => (HttpKind::Sse, "sse"),
            _ => return Err(SpecError::UnknownType),
        };
        let url = filled(self.url).ok_or(SpecError::Missing {
            field: "url",
            kind: kind_name,
        })?;
        let url = address(&url).ok_or(SpecError::Address("url"))?;
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let header = HeaderName::from_bytes(name.as_bytes())
                .ok()
                .filter(|name| !is_reserved(name));
            let value = HeaderValue::from_str(value.trim()).ok();
            let (header, mut value) = header
                .zip(value)
                .ok_or_else(|| SpecError::Header(name.clone()))?;
            value.set_sensitive(true);
            headers.insert(header, value);
        }
        let oauth = self.oauth.filter(|oauth| oauth.enabled).map(Box::new);
        if oauth
            .as_ref()
            .is_some_and(|oauth| address(&oauth.token_url).is_none())
        {
            return Err(SpecError::Address("oauth.token_url"));
        }
        Ok(Link::Http {
            url,
            headers,
            kind,
            oauth,
        })
    }
}

/// `true` for headers that the protocol sets itself.
fn is_reserved(name: &HeaderName) -> bool {
    [
        "accept",
        "content-type",
        "content-length",
        "host",
        "mcp-session-id",
        "mcp-protocol-version",
        "last-event-id",
    ]
    .contains(&name.as_str())
}

fn address(text: &str) -> Option<Url> {
    Url::parse(text.trim())
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

fn filled(text: Option<String>) -> Option<String> {
    text.map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty())
}

fn limit(
    field: &'static str,
    seconds: Option<f64>,
    default: Duration,
) -> Result<Duration, SpecError> {
    match seconds {
        None => Ok(default),
        Some(seconds) if seconds > 0.0 && seconds <= MAX_TIMEOUT_SECS => {
            Ok(Duration::from_secs_f64(seconds))
        }
        Some(_) => Err(SpecError::Limit(field)),
    }
}

/// Removes fields that are null, which count as absent.
fn without_nulls(entry: &Value) -> Value {
    match entry {
        Value::Object(fields) => fields
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key.clone(), without_nulls(value)))
            .collect::<Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

#[cfg(test)]
#[path = "spec_tests.rs"]
mod tests;
