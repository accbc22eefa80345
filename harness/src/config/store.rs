//! `store`: long-term memory of users, and what makes it findable by meaning.

use secrecy::SecretString;
use serde::Deserialize;

use super::check::Checker;
use super::open_keys::optional_secret;

/// Long-term memory.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct StoreConfig {
    /// The index of meanings; without one, items are found by place and content only.
    pub index: Option<StoreIndexConfig>,
    /// How long items live.
    pub ttl: StoreTtlConfig,
}

/// The index of meanings.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct StoreIndexConfig {
    /// The embedding model.
    pub embed: EmbedConfig,
    /// How many numbers its vectors have.
    pub dims: usize,
    /// Which parts of a value count: `$` for all of it, or paths such as `notes[*].text`.
    #[serde(default = "whole")]
    pub fields: Vec<String>,
}

fn whole() -> Vec<String> {
    vec!["$".to_owned()]
}

/// The embedding model: a name with its provider, or an entry of its own.
#[derive(Debug, Clone, Deserialize)]
#[serde(
    untagged,
    expecting = "expected `provider:model`, or an entry with `model`"
)]
#[non_exhaustive]
pub enum EmbedConfig {
    /// `openai:<model>`, with the key in OPENAI_API_KEY.
    Name(String),
    /// A model behind an OpenAI-compatible server.
    Entry(EmbedEntryConfig),
}

/// A model behind an OpenAI-compatible server.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct EmbedEntryConfig {
    /// The model's name there; `openai:` before it is understood.
    pub model: String,
    /// The address before `/embeddings`; OpenAI's when absent.
    #[serde(default)]
    pub base_url: Option<String>,
    /// The provider's key.
    #[serde(default, deserialize_with = "optional_secret")]
    pub api_key: Option<SecretString>,
    /// Seconds that one call may take.
    #[serde(default = "half_a_minute")]
    pub timeout: f64,
}

fn half_a_minute() -> f64 {
    30.0
}

/// How long items live. The words are those of `langgraph.json`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct StoreTtlConfig {
    /// Minutes that an item lives when nobody says; null for ever.
    pub default_ttl: Option<f64>,
    /// Whether reading begins an item's life anew.
    pub refresh_on_read: bool,
    /// Minutes between two sweeps.
    pub sweep_interval_minutes: f64,
}

impl Default for StoreTtlConfig {
    fn default() -> Self {
        Self {
            default_ttl: None,
            refresh_on_read: true,
            sweep_interval_minutes: 60.0,
        }
    }
}

/// A century of minutes.
const LONGEST: f64 = 60.0 * 24.0 * 366.0 * 100.0;

impl StoreConfig {
    pub(super) fn check(&self, check: &mut Checker) {
        check.under("ttl", |check| {
            check.within(
                "sweep_interval_minutes",
                self.ttl.sweep_interval_minutes,
                0.01..=LONGEST,
            );
            check.within_if_set("default_ttl", self.ttl.default_ttl, 0.001..=LONGEST);
        });
        if let Some(index) = &self.index {
            check.under("index", |check| {
                check.within("dims", index.dims, 1..=65_536);
                check.under("embed", |check| match &index.embed {
                    EmbedConfig::Name(name) => check.not_blank("model", name),
                    EmbedConfig::Entry(entry) => {
                        check.not_blank("model", &entry.model);
                        check.within("timeout", entry.timeout, 0.001..=3_600.0);
                    }
                });
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_wrong_embedding_model_is_told_what_it_may_be() {
        for wrong in [json!(5), json!({ "base_url": "http://x" })] {
            let error = serde_json::from_value::<EmbedConfig>(wrong)
                .unwrap_err()
                .to_string();
            assert_eq!(error, "expected `provider:model`, or an entry with `model`");
        }
    }
}
