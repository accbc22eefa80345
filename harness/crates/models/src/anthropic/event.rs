//! Event of an Anthropic message stream as JSON. Parsed leniently, because other servers use this
//! wire too.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::http::{count_of, lenient};
use deerflow_core::messages::UsageMetadata;

/// Event of a stream, or a whole message that is not streamed.
#[derive(Debug, Deserialize)]
pub(super) struct MessagesEvent {
    #[serde(rename = "type", default)]
    pub(super) kind: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) index: Option<u64>,
    #[serde(default)]
    pub(super) message: Option<Head>,
    #[serde(default)]
    pub(super) content_block: Option<Value>,
    #[serde(default)]
    pub(super) delta: Option<Delta>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) usage: Option<Map<String, Value>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Head {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) model: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) usage: Option<Map<String, Value>>,
    #[serde(default)]
    pub(super) content: Option<Vec<Value>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) stop_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Delta {
    #[serde(default)]
    pub(super) text: Option<String>,
    #[serde(default)]
    pub(super) thinking: Option<String>,
    #[serde(default)]
    pub(super) signature: Option<String>,
    #[serde(default)]
    pub(super) partial_json: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) stop_reason: Option<String>,
}

/// Token counts of a message. Later events repeat some of them with newer values.
#[derive(Debug, Default)]
pub(super) struct MessagesUsage(BTreeMap<String, u64>);

impl MessagesUsage {
    /// Merges the counts of an event. Ignores invalid values.
    pub(super) fn merge(&mut self, counts: Option<Map<String, Value>>) {
        self.0.extend(
            counts
                .into_iter()
                .flatten()
                .filter_map(|(key, count)| Some((key, count_of(&count)?))),
        );
    }

    /// Returns the usage. Cached tokens are counted as input.
    pub(super) fn metadata(&self) -> Option<UsageMetadata> {
        let count = |key: &str| self.0.get(key).copied();
        if self.0.is_empty() {
            return None;
        }
        let (read, written) = (
            count("cache_read_input_tokens"),
            count("cache_creation_input_tokens"),
        );
        let input = [count("input_tokens"), read, written]
            .into_iter()
            .flatten()
            .fold(0, u64::saturating_add);
        let output = count("output_tokens").unwrap_or(0);
        let details = [("cache_read", read), ("cache_creation", written)];
        let details = details
            .into_iter()
            .filter_map(|(name, count)| Some((name.to_owned(), Value::from(count?))));
        Some(UsageMetadata {
            input_tokens: input,
            output_tokens: output,
            total_tokens: input.saturating_add(output),
            input_token_details: details.collect(),
            output_token_details: Map::new(),
        })
    }
}
