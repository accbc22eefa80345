//! Tokens that one model call cost, in the provider's own count.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Token counts of one AI message.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct UsageMetadata {
    /// Prompt tokens.
    #[serde(default)]
    pub input_tokens: u64,
    /// Completion tokens.
    #[serde(default)]
    pub output_tokens: u64,
    /// Their sum as the provider gave it; see [`UsageMetadata::total`].
    #[serde(default)]
    pub total_tokens: u64,
    /// Parts of the prompt, such as `cache_read`.
    #[serde(default)]
    pub input_token_details: Map<String, Value>,
    /// Parts of the completion, such as `reasoning`.
    #[serde(default)]
    pub output_token_details: Map<String, Value>,
}

impl UsageMetadata {
    /// The total, or input plus output where the provider left it out.
    pub fn total(&self) -> u64 {
        if self.total_tokens == 0 { self.input_tokens.saturating_add(self.output_tokens) } else { self.total_tokens }
    }
}
