//! Small sections: `token_usage`, `agents_api`, `webhooks`, `testing`.

use secrecy::SecretString;
use serde::Deserialize;

use super::open_keys::optional_secret;

/// Reporting of token usage to clients.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TokenUsageConfig {
    /// Enables the reporting.
    pub enabled: bool,
}

impl Default for TokenUsageConfig {
    fn default() -> Self {
        Self { enabled: true }
    }
}

/// Management of agents over HTTP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct AgentsApiConfig {
    /// Enables the management.
    pub enabled: bool,
}

/// Webhooks that report the end of runs.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct WebhooksConfig {
    /// Allows webhook addresses on this machine and in private networks.
    pub allow_private: bool,
    /// Secret that signs calls; they are unsigned if absent.
    #[serde(deserialize_with = "optional_secret")]
    pub secret: Option<SecretString>,
}

/// Settings of test setups.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TestingConfig {
    /// Offers the agent that API conformance suites use.
    pub conformance_agent: bool,
}
