//! Event of a responses stream as JSON.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::http::{count, count_of, lenient};
use deerflow_core::messages::UsageMetadata;

#[derive(Debug, Deserialize)]
pub(super) struct ResponsesEvent {
    #[serde(rename = "type", default)]
    pub(super) kind: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) output_index: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) summary_index: Option<u64>,
    #[serde(default)]
    pub(super) delta: Option<Value>,
    #[serde(default)]
    pub(super) item: Option<Value>,
    #[serde(default)]
    pub(super) response: Option<Response>,
}

impl ResponsesEvent {
    /// Returns the added text.
    pub(super) fn text(&self) -> &str {
        self.delta
            .as_ref()
            .and_then(Value::as_str)
            .unwrap_or_default()
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Response {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) model: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) status: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) incomplete_details: Option<Map<String, Value>>,
    #[serde(default)]
    pub(super) error: Option<Value>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) usage: Option<ResponsesUsage>,
    #[serde(default)]
    pub(super) output: Option<Vec<Value>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ResponsesUsage {
    #[serde(default, deserialize_with = "count")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    total_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    input_tokens_details: Option<Map<String, Value>>,
    #[serde(default, deserialize_with = "lenient")]
    output_tokens_details: Option<Map<String, Value>>,
}

impl From<ResponsesUsage> for UsageMetadata {
    fn from(usage: ResponsesUsage) -> Self {
        let (input, output) = (
            usage.input_tokens.unwrap_or(0),
            usage.output_tokens.unwrap_or(0),
        );
        let part = |name: &str, details: Option<Map<String, Value>>, key: &str| {
            let count = details.and_then(|details| count_of(details.get(key)?));
            count
                .map(|count| (name.to_owned(), Value::from(count)))
                .into_iter()
                .collect()
        };
        Self {
            input_tokens: input,
            output_tokens: output,
            total_tokens: usage
                .total_tokens
                .unwrap_or_else(|| input.saturating_add(output)),
            input_token_details: part("cache_read", usage.input_tokens_details, "cached_tokens"),
            output_token_details: part(
                "reasoning",
                usage.output_tokens_details,
                "reasoning_tokens",
            ),
        }
    }
}
