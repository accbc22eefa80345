//! `store`: item store (LangGraph Store) and its semantic search.

use secrecy::SecretString;
use serde::Deserialize;

use super::check::Checker;
use super::open_keys::optional_secret;

/// Item store (LangGraph Store).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct StoreConfig {
    /// Semantic index; without it, items are found only by namespace and content.
    pub index: Option<StoreIndexConfig>,
    /// Lifetime of items.
    pub ttl: StoreTtlConfig,
}

/// Semantic index.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct StoreIndexConfig {
    /// Embedding model.
    pub embed: EmbedConfig,
    /// Number of dimensions of its vectors.
    pub dims: usize,
    /// Indexed parts of a value: `$` for the whole value, or paths such as `notes[*].text`.
    #[serde(default = "default_fields")]
    pub fields: Vec<String>,
}

fn default_fields() -> Vec<String> {
    vec!["$".to_owned()]
}

/// Embedding model: a name with its provider, or an entry.
#[derive(Debug, Clone, Deserialize)]
#[serde(
    untagged,
    expecting = "expected `provider:model`, or an entry with `model`"
)]
#[non_exhaustive]
pub enum EmbedConfig {
    /// `openai:<model>`, with the API key in OPENAI_API_KEY.
    Name(String),
    /// Model of an OpenAI-compatible server.
    Entry(EmbedEntryConfig),
}

/// Model of an OpenAI-compatible server.
#[derive(Debug, Clone, Deserialize)]
#[non_exhaustive]
pub struct EmbedEntryConfig {
    /// Name of the model at the server; the prefix `openai:` is accepted.
    pub model: String,
    /// Address without `/embeddings`; OpenAI's if absent.
    #[serde(default)]
    pub base_url: Option<String>,
    /// API key of the provider.
    #[serde(default, deserialize_with = "optional_secret")]
    pub api_key: Option<SecretString>,
    /// Timeout of one call, in seconds.
    #[serde(default = "default_timeout_seconds")]
    pub timeout: f64,
}

fn default_timeout_seconds() -> f64 {
    30.0
}

/// Lifetime of items. The keys are those of `langgraph.json`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct StoreTtlConfig {
    /// Default lifetime of an item, in minutes; null for unlimited.
    pub default_ttl: Option<f64>,
    /// Restarts the lifetime of an item when it is read.
    pub refresh_on_read: bool,
    /// Interval between sweeps, in minutes.
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

/// Maximum lifetime: one hundred years, in minutes.
const MAX_TTL_MINUTES: f64 = 60.0 * 24.0 * 366.0 * 100.0;

impl StoreConfig {
    pub(super) fn check(&self, check: &mut Checker) {
        check.under("ttl", |check| {
            check.within(
                "sweep_interval_minutes",
                self.ttl.sweep_interval_minutes,
                0.01..=MAX_TTL_MINUTES,
            );
            check.within_if_set("default_ttl", self.ttl.default_ttl, 0.001..=MAX_TTL_MINUTES);
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
    fn invalid_embedding_model_error_states_allowed_forms() {
        for wrong in [json!(5), json!({ "base_url": "http://x" })] {
            let error = serde_json::from_value::<EmbedConfig>(wrong)
                .unwrap_err()
                .to_string();
            assert_eq!(error, "expected `provider:model`, or an entry with `model`");
        }
    }
}
