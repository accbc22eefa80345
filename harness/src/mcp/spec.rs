//! A server as `extensions_config.json` describes it, read once and held against every bound.

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

/// How long a server may take until it can be talked to, where nobody says. A launcher may have to download it first.
const INIT_LIMIT: Duration = Duration::from_secs(60);
/// How long a call may take, where nobody says.
const CALL_LIMIT: Duration = Duration::from_secs(60);
/// Nobody waits longer than this, whatever is configured.
const LONGEST_LIMIT: f64 = 24.0 * 3600.0;

/// A server that can be connected to.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    /// Its name: the first part of its tools' names.
    pub name: String,
    /// The way to it.
    pub link: Link,
    /// Whether its tools carry its name.
    pub prefix: bool,
    /// Tools that are left out, by the server's own names.
    pub hidden: BTreeSet<String>,
    /// How long it may take to start and to greet.
    pub init_limit: Duration,
    /// How long a call may take.
    pub call_limit: Duration,
    /// Tells this description from any other.
    digest: [u8; 32],
}

/// The way to a server.
#[derive(Debug, Clone)]
pub enum Link {
    /// A program that speaks over its standard streams.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Its variables, besides the few that every server gets.
        env: Secrets,
        /// Where it starts; in a folder of its own when nobody says.
        cwd: Option<PathBuf>,
        /// Whether that is the thread's workspace, whose files agents write: launchers may take them for code.
        starts_in_workspace: bool,
    },
    /// A server over HTTP.
    Http {
        /// Its address.
        url: Url,
        /// Headers of every request.
        headers: HeaderMap,
        /// Which of the two ways over HTTP.
        kind: HttpKind,
        /// Where a token comes from, if one is needed.
        oauth: Option<Box<OAuthSpec>>,
    },
}

/// The two ways over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpKind {
    /// One address that answers each message.
    Streamable,
    /// The older way: a stream of events, and another address for what the client says.
    Sse,
}

/// Texts by name, of which only the names are shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(BTreeMap<String, String>);

impl Secrets {
    /// All of them.
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

/// Why a server cannot be used. The texts show no value of the entry: any may be a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// A field holds something else.
    #[error("`{0}` is not of the right kind")]
    Shape(String),
    /// A way that nobody knows.
    #[error("`type` is none of stdio, sse and http")]
    UnknownType,
    /// A field that the way needs.
    #[error("`{field}` is missing, a server of type {kind} needs it")]
    Missing {
        /// The field.
        field: &'static str,
        /// The way.
        kind: &'static str,
    },
    /// An address that is none.
    #[error("`{0}` is no http or https address")]
    Address(&'static str),
    /// A header that cannot be sent.
    #[error("`headers.{0}` cannot be sent as a header")]
    Header(String),
    /// A limit that is none.
    #[error("`{0}` must be a number of seconds above 0, a day at most")]
    Limit(&'static str),
    /// A name that no tool may carry.
    #[error("a server needs a name")]
    Unnamed,
}

/// One entry as it is written. Keys that nobody knows are left alone.
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
    /// The servers that are on, in the order of the file, each with what is wrong with it. `$VARIABLE`s are resolved already.
    pub fn all(extensions: &Extensions) -> Vec<(String, Result<Self, SpecError>)> {
        let none = Map::new();
        let entries = extensions.section(MCP_SERVERS).unwrap_or(&none);
        let read = |(name, entry): (&String, &Value)| {
            Some((name.clone(), Self::read(name, entry).transpose()?))
        };
        entries.iter().filter_map(read).collect()
    }

    /// One entry; nothing when it is switched off.
    ///
    /// # Errors
    /// When the server cannot be used.
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
            INIT_LIMIT,
        )?;
        let call_limit = limit("tool_call_timeout", entry.tool_call_timeout, CALL_LIMIT)?;
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

    /// Whether the other one describes the same server in the same way.
    pub fn is_same(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Entry {
    fn link(self) -> Result<Link, SpecError> {
        let (kind, shown) = match self.r#type.as_str() {
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
            kind: shown,
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

/// Headers that the protocol writes itself.
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
        Some(seconds) if seconds > 0.0 && seconds <= LONGEST_LIMIT => {
            Ok(Duration::from_secs_f64(seconds))
        }
        Some(_) => Err(SpecError::Limit(field)),
    }
}

/// The entry without fields that are null: they are as good as absent.
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
