//! Settings of an agent of this kind, from four levels: the flow, the options of the application,
//! the variables `*AGENTSFLOW_PI_MONO_*`, and the variables `*AGENTSFLOW_LLM_*`. Pure.

use std::fmt;

use deerflow_core::config::Variables;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};

use super::origin::{Origin, is_deepseek};
use crate::adapter::TurnEffect;
use crate::schema::ModelProfile;

/// Options of the application: the second level.
#[derive(Debug, Clone, Default)]
pub struct PiMonoOptions {
    /// Base URL.
    pub base_url: Option<String>,
    /// API key.
    pub api_key: Option<SecretString>,
    /// Name of the model.
    pub model: Option<String>,
    /// Temperature.
    pub temperature: Option<f64>,
    /// Origins, such as `http://10.0.0.5:8080`, that flows may name: they may lie in private
    /// networks and receive the application's API key.
    pub allowed_origins: Vec<String>,
}

/// Sources of settings.
#[derive(Debug, Clone, Copy)]
pub struct SettingsInput<'a> {
    /// `adapterConfig` of the agent.
    pub agent_config: &'a Map<String, Value>,
    /// `adapterConfig` of the flow, below that of the agent.
    pub flow_config: &'a Map<String, Value>,
    /// Model profile of the agent.
    pub profile: &'a ModelProfile,
    /// Options of the application.
    pub options: &'a PiMonoOptions,
    /// Environment of the application.
    pub variables: &'a Variables,
}

/// Source of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// `modelProfile` of the agent.
    ModelProfile,
    /// `adapterConfig` of the agent or the flow.
    AdapterConfig,
    /// Options of the application.
    Options,
    /// Environment variable.
    Variable(&'static str),
}

impl Source {
    /// Returns the name for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ModelProfile => "modelProfile",
            Self::AdapterConfig => "adapterConfig",
            Self::Options => "options",
            Self::Variable(name) => name,
        }
    }

    /// Reports whether the author of the flow chose the value.
    pub fn is_flow(self) -> bool {
        matches!(self, Self::ModelProfile | Self::AdapterConfig)
    }
}

/// A value and its source.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting<T> {
    /// Value.
    pub value: T,
    /// Source.
    pub source: Source,
}

/// An API key as it is configured.
#[derive(Clone)]
pub enum ApiKey {
    /// The key.
    Literal(SecretString),
    /// Name of a secret.
    Secret(String),
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(_) => f.write_str("Literal([redacted])"),
            Self::Secret(name) => f.debug_tuple("Secret").field(name).finish(),
        }
    }
}

/// Transport of the turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransportKind {
    /// DeepSeek-compatible chat completions.
    DeepSeek,
    /// Sessions and turns over HTTP.
    Http,
}

impl TransportKind {
    /// Returns the name in a configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DeepSeek => "deepseek",
            Self::Http => "http",
        }
    }
}

/// Error: the configuration names a transport that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("transport {0:?} is unknown; use deepseek, openai-compatible, http or pi-mono")]
pub struct UnknownTransport(pub String);

/// Resolved settings.
#[derive(Debug, Clone)]
pub struct PiMonoSettings {
    /// Base URL without trailing slashes.
    pub base_url: Option<Setting<String>>,
    /// API key.
    pub api_key: Option<Setting<ApiKey>>,
    /// Name of the model.
    pub model: Option<Setting<String>>,
    /// Temperature.
    pub temperature: Option<Setting<f64>>,
    /// Transport.
    pub transport: Result<TransportKind, UnknownTransport>,
    /// Effect of a repeated turn that the configuration states.
    pub effect: Option<TurnEffect>,
    /// Origins that the application trusts.
    pub trusted: Vec<Origin>,
}

const BASE_URL_NAMES: [&str; 4] = [
    "VITE_AGENTSFLOW_PI_MONO_BASE_URL",
    "AGENTSFLOW_PI_MONO_BASE_URL",
    "VITE_AGENTSFLOW_LLM_BASE_URL",
    "AGENTSFLOW_LLM_BASE_URL",
];
const API_KEY_NAMES: [&str; 4] = [
    "VITE_AGENTSFLOW_PI_MONO_API_KEY",
    "AGENTSFLOW_PI_MONO_API_KEY",
    "VITE_AGENTSFLOW_LLM_API_KEY",
    "AGENTSFLOW_LLM_API_KEY",
];
const MODEL_NAMES: [&str; 4] = [
    "VITE_AGENTSFLOW_PI_MONO_MODEL",
    "AGENTSFLOW_PI_MONO_MODEL",
    "VITE_AGENTSFLOW_LLM_MODEL",
    "AGENTSFLOW_LLM_MODEL",
];
const TEMPERATURE_NAMES: [&str; 2] = [
    "VITE_AGENTSFLOW_PI_MONO_TEMPERATURE",
    "AGENTSFLOW_PI_MONO_TEMPERATURE",
];

impl PiMonoSettings {
    /// Resolves the settings. Blank values count as absent on every level.
    pub fn resolve(input: &SettingsInput<'_>) -> Self {
        let SettingsInput {
            profile,
            options,
            variables,
            ..
        } = *input;
        let base_url = first([
            at(Source::AdapterConfig, input.text("baseUrl")),
            at(Source::Options, options.base_url.as_deref().and_then(text)),
            variable(variables, &BASE_URL_NAMES),
        ])
        .map(|url| Setting {
            value: url.value.trim_end_matches('/').to_owned(),
            ..url
        });
        let literal = |key: String| ApiKey::Literal(SecretString::from(key));
        let option_key = options.api_key.as_ref().map(ExposeSecret::expose_secret);
        let api_key = first([
            at(Source::AdapterConfig, input.find(api_key)),
            at(Source::Options, option_key.and_then(text).map(literal)),
            variable(variables, &API_KEY_NAMES).map(|key| Setting {
                value: literal(key.value),
                source: key.source,
            }),
        ]);
        let model = first([
            at(
                Source::ModelProfile,
                profile.model.as_deref().and_then(text),
            ),
            at(Source::AdapterConfig, input.text("model")),
            at(Source::Options, options.model.as_deref().and_then(text)),
            variable(variables, &MODEL_NAMES),
        ]);
        let temperature = first([
            at(Source::ModelProfile, profile.temperature.and_then(finite)),
            at(Source::AdapterConfig, input.find(temperature)),
            at(Source::Options, options.temperature.and_then(finite)),
            numeric_variable(variables),
        ]);
        let transport = transport(
            input.text("transport").as_deref(),
            base_url.as_ref().map(|url| url.value.as_str()),
        );
        let configured = BASE_URL_NAMES.iter().filter_map(|name| variables.get(name));
        let trusted = configured
            .chain(options.base_url.clone())
            .chain(options.allowed_origins.iter().cloned())
            .filter_map(|url| Origin::of(&url))
            .collect();
        let effect = input.text("effect");
        Self {
            base_url,
            api_key,
            model,
            temperature,
            transport,
            effect: effect.and_then(|name| serde_json::from_value(Value::String(name)).ok()),
            trusted,
        }
    }

    /// Reports whether the application configured or allows the origin of the base URL.
    pub fn is_trusted(&self) -> bool {
        self.base_url.as_ref().is_some_and(|url| {
            !url.source.is_flow()
                || Origin::of(&url.value).is_some_and(|origin| self.trusted.contains(&origin))
        })
    }
}

impl SettingsInput<'_> {
    /// Returns the first usable value of the agent's and the flow's configuration.
    fn find<T>(&self, read: impl Fn(&Map<String, Value>) -> Option<T>) -> Option<T> {
        read(self.agent_config).or_else(|| read(self.flow_config))
    }

    fn text(&self, key: &str) -> Option<String> {
        self.find(|config| config.get(key)?.as_str().and_then(text))
    }
}

fn first<T, const N: usize>(levels: [Option<Setting<T>>; N]) -> Option<Setting<T>> {
    levels.into_iter().flatten().next()
}

fn at<T>(source: Source, value: Option<T>) -> Option<Setting<T>> {
    value.map(|value| Setting { value, source })
}

fn text(value: &str) -> Option<String> {
    Some(value.trim())
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

fn finite(number: f64) -> Option<f64> {
    Some(number).filter(|number| number.is_finite())
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().and_then(finite)
}

fn variable(variables: &Variables, names: &[&'static str]) -> Option<Setting<String>> {
    names.iter().find_map(|name| {
        let value = text(&variables.get(name)?)?;
        at(Source::Variable(name), Some(value))
    })
}

fn numeric_variable(variables: &Variables) -> Option<Setting<f64>> {
    TEMPERATURE_NAMES.iter().find_map(|name| {
        let value = number(&variables.get(name)?)?;
        at(Source::Variable(name), Some(value))
    })
}

fn api_key(config: &Map<String, Value>) -> Option<ApiKey> {
    match config.get("apiKey")? {
        Value::String(key) => text(key).map(|key| ApiKey::Literal(SecretString::from(key))),
        Value::Object(reference) => reference
            .get("secret")?
            .as_str()
            .and_then(text)
            .map(ApiKey::Secret),
        _ => None,
    }
}

fn temperature(config: &Map<String, Value>) -> Option<f64> {
    match config.get("temperature")? {
        Value::String(text) => number(text),
        value => value.as_f64().and_then(finite),
    }
}

/// Selects the transport: the named one, else the one that the base URL implies.
fn transport(
    name: Option<&str>,
    base_url: Option<&str>,
) -> Result<TransportKind, UnknownTransport> {
    match name.map(str::to_lowercase).as_deref() {
        Some("deepseek" | "openai-compatible") => Ok(TransportKind::DeepSeek),
        Some("http" | "pi-mono") => Ok(TransportKind::Http),
        Some(other) => Err(UnknownTransport(other.chars().take(64).collect())),
        None if base_url.is_some_and(is_deepseek) => Ok(TransportKind::DeepSeek),
        None => Ok(TransportKind::Http),
    }
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
