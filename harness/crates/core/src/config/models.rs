//! `models[]`: language models that a run may use; the first is the default.

use std::collections::HashSet;

use serde::Deserialize;

use super::check::Checker;
use super::open_keys::OpenKeys;
use super::unresolved::{MissingVariable, UnresolvedVariable, require_resolved};

/// Maximum number of retries; more would let a run wait for an hour.
const MAX_RETRIES: u32 = 100;

/// Model entry: known properties, and keys that are passed to the provider.
#[derive(Debug, Clone, Default, Deserialize)]
#[non_exhaustive]
pub struct ModelConfig {
    /// Name for runs and clients; unique in the list.
    pub name: String,
    /// Display name.
    #[serde(default)]
    pub display_name: Option<String>,
    /// Description for users.
    #[serde(default)]
    pub description: Option<String>,
    /// Provider: a kind such as `openai`, or the class path of an older configuration.
    #[serde(rename = "use")]
    pub provider: String,
    /// Name of the model at its provider.
    pub model: String,
    /// Uses the provider's responses API instead of chat completions.
    #[serde(default)]
    pub use_responses_api: Option<bool>,
    /// Has no effect: there is only one answer format.
    #[serde(default)]
    pub output_version: Option<String>,
    /// `true` if the model supports thinking.
    #[serde(default)]
    pub supports_thinking: bool,
    /// `true` if the model accepts a `reasoning_effort`.
    #[serde(default)]
    pub supports_reasoning_effort: bool,
    /// `true` if the model accepts images.
    #[serde(default)]
    pub supports_vision: bool,
    /// Provider keys that override the entry's own while thinking is enabled.
    #[serde(default)]
    pub when_thinking_enabled: Option<OpenKeys>,
    /// Provider keys that override the entry's own while thinking is disabled.
    #[serde(default)]
    pub when_thinking_disabled: Option<OpenKeys>,
    /// Short form of `when_thinking_enabled.thinking`.
    #[serde(default)]
    pub thinking: Option<OpenKeys>,
    /// Model entries that are tried in order after this one has failed permanently.
    #[serde(default)]
    pub fallback_models: Vec<String>,
    /// Size of the context window, in tokens.
    #[serde(default)]
    pub context_window: Option<u64>,
    /// Maximum time between two chunks of a stream, in seconds.
    #[serde(default)]
    pub stream_chunk_timeout: Option<f64>,
    /// Maximum retries of a call; if absent, `llm_call.retry_max_attempts` limits the attempts.
    #[serde(default)]
    pub max_retries: Option<u32>,
    /// Maximum concurrent calls, 0 for no limit; if absent, `llm_call.max_concurrent_calls`
    /// applies.
    #[serde(default)]
    pub max_concurrent_calls: Option<usize>,
    /// Maximum size of one answer in bytes, 0 for no limit; if absent, `llm_call.max_answer_bytes`
    /// applies.
    #[serde(default)]
    pub max_answer_bytes: Option<usize>,
    /// Token prices.
    #[serde(default)]
    pub pricing: Option<PricingConfig>,
    /// `$VARIABLE` references of this entry without a value.
    #[serde(default, rename = "__unresolved")]
    pub unresolved: Vec<UnresolvedVariable>,
    /// All other keys, which are passed to the provider.
    #[serde(flatten)]
    pub extra: OpenKeys,
}

/// Prices per million tokens.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct PricingConfig {
    /// Currency, for example `USD`.
    #[serde(default = "usd")]
    pub currency: String,
    /// Price of input tokens.
    #[serde(default)]
    pub input_per_million: Option<f64>,
    /// Price of output tokens.
    #[serde(default)]
    pub output_per_million: Option<f64>,
    /// Price of cached input tokens; the price of input tokens if absent.
    #[serde(default)]
    pub input_cache_hit_per_million: Option<f64>,
}

fn usd() -> String {
    "USD".to_owned()
}

impl ModelConfig {
    /// Creates an entry with only the three required keys.
    pub fn new(
        name: impl Into<String>,
        provider: impl Into<String>,
        model: impl Into<String>,
    ) -> Self {
        Self {
            name: name.into(),
            provider: provider.into(),
            model: model.into(),
            ..Self::default()
        }
    }

    /// Returns an error if the entry refers to an environment variable without a value.
    pub fn require_resolved(&self) -> Result<(), MissingVariable> {
        require_resolved("model", &self.name, &self.unresolved)
    }

    fn check(&self, check: &mut Checker) {
        check.not_blank("name", &self.name);
        check.not_blank("use", &self.provider);
        check.not_blank("model", &self.model);
        check.within_if_set("context_window", self.context_window, 1..);
        check.within_if_set("max_retries", self.max_retries, 0..=MAX_RETRIES);
        if let Some(pricing) = &self.pricing {
            check.under("pricing", |check| {
                check.within_if_set("input_per_million", pricing.input_per_million, 0.0..);
                check.within_if_set("output_per_million", pricing.output_per_million, 0.0..);
                check.within_if_set(
                    "input_cache_hit_per_million",
                    pricing.input_cache_hit_per_million,
                    0.0..,
                );
            });
        }
        if let Some(seconds) = self.stream_chunk_timeout {
            check.positive("stream_chunk_timeout", seconds);
        }
    }
}

pub(super) fn check_all(models: &[ModelConfig], check: &mut Checker) {
    let mut seen = HashSet::new();
    let names: HashSet<&str> = models.iter().map(|model| model.name.as_str()).collect();
    for (position, model) in models.iter().enumerate() {
        check.under(position, |check| {
            model.check(check);
            if !seen.insert(model.name.as_str()) {
                let found = format!("`{}` (duplicate)", model.name);
                check.refuse("name", found, "unique names");
            }
            for name in model
                .fallback_models
                .iter()
                .filter(|name| !names.contains(name.as_str()))
            {
                check.refuse(
                    "fallback_models",
                    format!("`{name}`"),
                    "names of other entries under `models`",
                );
            }
        });
    }
}
