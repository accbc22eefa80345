//! Sections of single guards over a run: `token_budget`, `read_before_write`, `safety_finish_reason`, `guardrails`.

use serde::Deserialize;

use super::check::Checker;
use super::open_keys::OpenKeys;

/// How many tokens one run may cost.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TokenBudgetConfig {
    /// Whether runs have a budget.
    pub enabled: bool,
    /// Tokens of all model calls together.
    pub max_tokens: u64,
    /// Tokens that are read; null for no limit of their own.
    pub max_input_tokens: Option<u64>,
    /// Tokens that are written; null for no limit of their own.
    pub max_output_tokens: Option<u64>,
    /// The share at which the model is told.
    pub warn_threshold: f64,
    /// The share at which the run is brought to its end.
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

/// Whether a file must have been read before it is changed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ReadBeforeWriteConfig {
    /// Whether it must.
    pub enabled: bool,
}

impl Default for ReadBeforeWriteConfig {
    fn default() -> Self {
        Self { enabled: true }
    }
}

/// Answers that a provider's safety filter broke off.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SafetyFinishReasonConfig {
    /// Whether they are recognized.
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

/// Who decides whether a tool may be called.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct GuardrailsConfig {
    /// Whether anybody is asked.
    pub enabled: bool,
    /// Whether a call is denied when the provider fails.
    pub fail_closed: bool,
    /// The agent's name to the provider.
    pub passport: Option<String>,
    /// Who is asked.
    pub provider: Option<GuardrailProviderConfig>,
}

/// One provider of decisions.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct GuardrailProviderConfig {
    /// The kind: `allowlist`, `rules`, or the class path of an older configuration.
    #[serde(rename = "use")]
    pub kind: String,
    /// The kind's own keys.
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
