//! Construction of adapters from configuration.

use std::sync::Arc;

use deerflow_domain::channels::ConnectMode;
use harness::clock::Clock;
use secrecy::SecretString;
use serde_json::{Map, Value};

use super::Platform;

/// Credential that the settings page asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CredentialField {
    /// Key in the configuration.
    pub name: &'static str,
    /// Label.
    pub label: &'static str,
    /// `true` if its value is masked.
    pub secret: bool,
}

/// Entry of a platform in the configuration, with the credentials in effect.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings(pub Map<String, Value>);

/// Invalid entry of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("channels.{provider}.{key}: {problem}")]
pub struct SettingsError {
    /// Platform.
    pub provider: &'static str,
    /// Key.
    pub key: String,
    /// Problem.
    pub problem: String,
}

impl Settings {
    /// Replaces fields by entered credentials.
    pub(crate) fn with_fields(
        mut self,
        fields: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        let fields = fields
            .into_iter()
            .map(|(field, value)| (field, value.into()));
        self.0.extend(fields);
        self
    }

    /// Returns a non-empty text.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.0
            .get(key)
            .and_then(Value::as_str)
            .map(str::trim)
            .filter(|text| !text.is_empty())
    }

    /// Returns a required secret.
    pub fn secret(&self, provider: &'static str, key: &str) -> Result<SecretString, SettingsError> {
        self.text(key)
            .map(SecretString::from)
            .ok_or_else(|| SettingsError {
                provider,
                key: key.to_owned(),
                problem: "is missing".to_owned(),
            })
    }

    /// Returns a switch.
    pub fn flag(&self, key: &str, default: bool) -> bool {
        self.0.get(key).and_then(Value::as_bool).unwrap_or(default)
    }

    /// Returns a list of ids; a single text or number is a list of one.
    pub fn ids(&self, key: &str) -> Vec<String> {
        fn id(value: &Value) -> Option<String> {
            match value {
                Value::String(text) => Some(text.trim().to_owned()).filter(|id| !id.is_empty()),
                Value::Number(number) => Some(number.to_string()),
                _ => None,
            }
        }
        match self.0.get(key) {
            Some(Value::Array(values)) => values.iter().filter_map(id).collect(),
            Some(value) => id(value).into_iter().collect(),
            None => Vec::new(),
        }
    }

    /// Returns a base address without its final slash: the configured one, or the default. Plain
    /// HTTP and WebSocket addresses are accepted for loopback hosts only.
    pub fn base(
        &self,
        provider: &'static str,
        key: &str,
        default: &str,
    ) -> Result<url::Url, SettingsError> {
        let text = self.text(key).unwrap_or(default).trim_end_matches('/');
        let problem = |problem: &str| SettingsError {
            provider,
            key: key.to_owned(),
            problem: problem.to_owned(),
        };
        let address = url::Url::parse(text).map_err(|_| problem("is not an address"))?;
        let is_loopback = match address.host() {
            Some(url::Host::Domain(name)) => name == "localhost",
            Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
            Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
            None => false,
        };
        match address.scheme() {
            "https" | "wss" => Ok(address),
            "http" | "ws" if is_loopback => Ok(address),
            "http" | "ws" => Err(problem("must use TLS, except for loopback addresses")),
            _ => Err(problem("is not an HTTP or WebSocket address")),
        }
    }
}

/// Parts of the process that adapters use.
#[derive(Debug, Clone)]
pub struct PlatformContext {
    /// HTTP client with the proxies of the environment. It follows no redirects.
    pub http: reqwest::Client,
    /// Clock.
    pub clock: Arc<dyn Clock>,
}

/// Constructor of a platform's adapter.
pub trait PlatformFactory: Send + Sync + std::fmt::Debug {
    /// Returns the key of the platform in the configuration.
    fn provider(&self) -> &'static str;

    /// Returns the name for display.
    fn display_name(&self) -> &'static str;

    /// Returns the required credentials.
    fn fields(&self) -> &'static [CredentialField];

    /// Returns further fields of the settings page, which the platform itself can answer.
    fn optional_fields(&self) -> &'static [CredentialField] {
        &[]
    }

    /// Returns the way in which people connect.
    fn connect_mode(&self) -> ConnectMode {
        ConnectMode::BindingCode
    }

    /// Returns the address that opens the bot of this name, without the code at its end.
    fn link(&self, _bot_name: &str) -> Option<String> {
        None
    }

    /// Creates the adapter.
    fn build(
        &self,
        settings: &Settings,
        context: &PlatformContext,
    ) -> Result<Arc<dyn Platform>, SettingsError>;
}
