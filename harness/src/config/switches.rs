//! Sections that only turn something on or off: `token_usage`, `agents_api`, `webhooks`, `testing`.

use secrecy::SecretString;
use serde::Deserialize;

use super::open_keys::optional_secret;

/// Whether clients are told how many tokens an answer took.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TokenUsageConfig {
    /// Whether they are.
    pub enabled: bool,
}

impl Default for TokenUsageConfig {
    fn default() -> Self {
        Self { enabled: true }
    }
}

/// Whether agents can be made and changed over HTTP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct AgentsApiConfig {
    /// Whether they can.
    pub enabled: bool,
}

/// Calls that tell of a run's end.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct WebhooksConfig {
    /// Whether hosts of this machine and of private networks may be called.
    pub allow_private: bool,
    /// What calls are signed with; they are not when absent.
    #[serde(deserialize_with = "optional_secret")]
    pub secret: Option<SecretString>,
}

/// What only test setups want.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TestingConfig {
    /// Offer the agent that API conformance suites drive.
    pub conformance_agent: bool,
}
