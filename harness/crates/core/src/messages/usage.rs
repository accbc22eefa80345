//! Tokens used by one model call, as counted by the provider.

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
    /// Sum as reported by the provider; see [`UsageMetadata::total`].
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
    /// Upper bound of any count. Greater counts of a provider are reduced to it, so that sums never
    /// overflow.
    pub const MOST: u64 = 1 << 40;
    /// Key of the part of the prompt that the provider read from its cache.
    pub const CACHE_READ: &str = "cache_read";

    /// Returns the number of prompt tokens that the provider read from its cache.
    pub fn cache_read(&self) -> u64 {
        self.input_token_details
            .get(Self::CACHE_READ)
            .and_then(Value::as_u64)
            .unwrap_or(0)
    }

    /// Returns the usage with all counts capped at [`UsageMetadata::MOST`].
    #[must_use]
    pub fn believable(self) -> Self {
        let part = |(part, count): (String, Value)| {
            (
                part,
                count
                    .as_u64()
                    .map_or(count, |count| count.min(Self::MOST).into()),
            )
        };
        Self {
            input_tokens: self.input_tokens.min(Self::MOST),
            output_tokens: self.output_tokens.min(Self::MOST),
            total_tokens: self.total_tokens.min(Self::MOST),
            input_token_details: self.input_token_details.into_iter().map(part).collect(),
            output_token_details: self.output_token_details.into_iter().map(part).collect(),
        }
    }

    /// Returns the sum of both; of the details only the numeric entries.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let parts = |first: &Map<String, Value>, second: &Map<String, Value>| {
            let mut sum = first.clone();
            for (part, count) in second {
                let both = [sum.get(part), Some(count)]
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_u64)
                    .fold(0, u64::saturating_add);
                sum.insert(part.clone(), both.into());
            }
            sum
        };
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            total_tokens: self.total().saturating_add(other.total()),
            input_token_details: parts(&self.input_token_details, &other.input_token_details),
            output_token_details: parts(&self.output_token_details, &other.output_token_details),
        }
    }

    /// Returns the total, or input plus output if the provider omitted it.
    pub fn total(&self) -> u64 {
        if self.total_tokens == 0 {
            self.input_tokens.saturating_add(self.output_tokens)
        } else {
            self.total_tokens
        }
    }
}
