//! Sections of guards that each control one aspect of a run: `token_budget`, `read_before_write`,
//! `safety_finish_reason`, `guardrails`.

use serde::Deserialize;

use super::check::Checker;
use super::open_keys::OpenKeys;

/// Token budget of one run.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TokenBudgetConfig {
    /// Enables the budget.
    pub enabled: bool,
    /// Maximum tokens of all model calls together.
    pub max_tokens: u64,
    /// Maximum input tokens; null for no separate limit.
    pub max_input_tokens: Option<u64>,
    /// Maximum output tokens; null for no separate limit.
    pub max_output_tokens: Option<u64>,
    /// Share of the budget at which the model is warned.
    pub warn_threshold: f64,
    /// Share of the budget at which the run is ended.
    pub hard_stop_threshold: f64,
}

impl Default for TokenBudgetConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            max_tokens: 200_000,
            max_input_tokens: None,
            max_output_tokens: None,
            warn_threshold: 0.8,
            hard_stop_threshold: 1.0,
        }
    }
}

impl TokenBudgetConfig {
    pub(super) fn check(&self, check: &mut Checker) {
        check.within("max_tokens", self.max_tokens, 1000..);
        check.within_if_set("max_input_tokens", self.max_input_tokens, 1..);
        check.within_if_set("max_output_tokens", self.max_output_tokens, 1..);
        check.within("warn_threshold", self.warn_threshold, 0.0..=1.0);
        check.within("hard_stop_threshold", self.hard_stop_threshold, 0.0..=1.0);
    }
}

/// Requirement to read a file before changing it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ReadBeforeWriteConfig {
    /// Enables the requirement.
    pub enabled: bool,
}

impl Default for ReadBeforeWriteConfig {
    fn default() -> Self {
        Self { enabled: true }
    }
}

/// Detection of answers that a provider's safety filter cut off.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SafetyFinishReasonConfig {
    /// Enables the detection.
    pub enabled: bool,
    /// Keys of older configurations.
    #[serde(flatten)]
    pub extra: OpenKeys,
}

impl Default for SafetyFinishReasonConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            extra: OpenKeys::default(),
        }
    }
}

/// Authorisation of tool calls.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct GuardrailsConfig {
    /// Enables the provider.
    pub enabled: bool,
    /// Denies a call if the provider fails.
    pub fail_closed: bool,
    /// Identity of the agent at the provider.
    pub passport: Option<String>,
    /// Provider of decisions.
    pub provider: Option<GuardrailProviderConfig>,
}

/// Provider of decisions.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct GuardrailProviderConfig {
    /// Kind: `allowlist`, `rules`, or the class path of an older configuration.
    #[serde(rename = "use")]
    pub kind: String,
    /// Settings of this kind.
    #[serde(default)]
    pub config: OpenKeys,
}

impl Default for GuardrailsConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            fail_closed: true,
            passport: None,
            provider: None,
        }
    }
}

impl GuardrailsConfig {
    pub(super) fn check(&self, check: &mut Checker) {
        match &self.provider {
            None if self.enabled => {
                check.refuse("provider", "absent", "a provider, since `enabled` is true")
            }
            Some(provider) => {
                check.under("provider", |check| check.not_blank("use", &provider.kind))
            }
            None => {}
        }
    }
}
