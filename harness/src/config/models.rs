//! `models[]`: the language models a run may use, the first being the default.

use std::collections::HashSet;

use serde::Deserialize;

use super::check::Checker;
use super::open_keys::OpenKeys;
use super::unresolved::{MissingVariable, UnresolvedVariable, require_resolved};

/// More tries keep a run waiting for an hour.
const MOST_RETRIES: u32 = 100;

/// One model entry: what is known about the model, and beside it what goes to its provider.
#[derive(Debug, Clone, Default, Deserialize)]
#[non_exhaustive]
pub struct ModelConfig {
    /// The name that runs and clients use; unique in the list.
    pub name: String,
    /// The name shown to people.
    #[serde(default)]
    pub display_name: Option<String>,
    /// A sentence shown to people.
    #[serde(default)]
    pub description: Option<String>,
    /// The provider: a kind such as `openai`, or the class path of an older configuration.
    #[serde(rename = "use")]
    pub provider: String,
    /// The model's name at its provider.
    pub model: String,
    /// Speak the provider's responses API instead of chat completions.
    #[serde(default)]
    pub use_responses_api: Option<bool>,
    /// The content format of the responses API.
    #[serde(default)]
    pub output_version: Option<String>,
    /// Whether the model can think before it answers.
    #[serde(default)]
    pub supports_thinking: bool,
    /// Whether the model takes a `reasoning_effort`.
    #[serde(default)]
    pub supports_reasoning_effort: bool,
    /// Whether the model takes images.
    #[serde(default)]
    pub supports_vision: bool,
    /// Provider keys that replace the entry's own while thinking is on.
    #[serde(default)]
    pub when_thinking_enabled: Option<OpenKeys>,
    /// Provider keys that replace the entry's own while thinking is off.
    #[serde(default)]
    pub when_thinking_disabled: Option<OpenKeys>,
    /// Shortcut for `when_thinking_enabled.thinking`.
    #[serde(default)]
    pub thinking: Option<OpenKeys>,
    /// Entries that are asked, in order, when this one fails for good.
    #[serde(default)]
    pub fallback_models: Vec<String>,
    /// How many tokens fit into one call.
    #[serde(default)]
    pub context_window: Option<u64>,
    /// Seconds without a chunk after which a stream counts as dead.
    #[serde(default)]
    pub stream_chunk_timeout: Option<f64>,
    /// Tries of a call after the first; `llm_call.retry_max_attempts` counts them all when absent.
    #[serde(default)]
    pub max_retries: Option<u32>,
    /// Calls in flight at once, 0 for any number; `llm_call.max_concurrent_calls` when absent.
    #[serde(default)]
    pub max_concurrent_calls: Option<usize>,
    /// Most bytes of one answer, 0 for any number; `llm_call.max_answer_bytes` when absent.
    #[serde(default)]
    pub max_answer_bytes: Option<usize>,
    /// What tokens cost.
    #[serde(default)]
    pub pricing: Option<PricingConfig>,
    /// `$VARIABLE`s of this entry that had no value.
    #[serde(default, rename = "__unresolved")]
    pub unresolved: Vec<UnresolvedVariable>,
    /// Every other key, for the provider.
    #[serde(flatten)]
    pub extra: OpenKeys,
}

/// What a million tokens cost.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct PricingConfig {
    /// Such as `USD`.
    #[serde(default = "usd")]
    pub currency: String,
    /// Of the prompt.
    #[serde(default)]
    pub input_per_million: Option<f64>,
    /// Of the answer.
    #[serde(default)]
    pub output_per_million: Option<f64>,
    /// Of the part of the prompt that the provider still had; as other prompt tokens when it is not given.
    #[serde(default)]
    pub input_cache_hit_per_million: Option<f64>,
}

fn usd() -> String {
    "USD".to_owned()
}

impl ModelConfig {
    /// An entry with the three required keys and nothing else.
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

    /// Refuses an entry that refers to an environment variable without a value.
    pub fn require_resolved(&self) -> Result<(), MissingVariable> {
        require_resolved("model", &self.name, &self.unresolved)
    }

    fn check(&self, check: &mut Checker) {
        check.not_blank("name", &self.name);
        check.not_blank("use", &self.provider);
        check.not_blank("model", &self.model);
        check.within_if_set("context_window", self.context_window, 1..);
        check.within_if_set("max_retries", self.max_retries, 0..=MOST_RETRIES);
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
    let known: HashSet<&str> = models.iter().map(|model| model.name.as_str()).collect();
    for (position, model) in models.iter().enumerate() {
        check.under(position, |check| {
            model.check(check);
            if !seen.insert(model.name.as_str()) {
                let found = format!("`{}` for the second time", model.name);
                check.refuse("name", found, "each name once");
            }
            for name in model
                .fallback_models
                .iter()
                .filter(|name| !known.contains(name.as_str()))
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
