//! Event of a Gemini stream as JSON. An answer that is not streamed is one event or a list of them.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use crate::http::{count, lenient};
use deerflow_core::messages::UsageMetadata;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GenerateContentEvent {
    #[serde(default)]
    pub(super) candidates: Option<Vec<Candidate>>,
    #[serde(default)]
    pub(super) prompt_feedback: Option<PromptFeedback>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) usage_metadata: Option<GenerateContentUsage>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) model_version: Option<String>,
    #[serde(default)]
    pub(super) error: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Candidate {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) index: Option<u64>,
    #[serde(default)]
    pub(super) content: Option<Contents>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) finish_reason: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Contents {
    #[serde(default)]
    pub(super) parts: Option<Vec<Part>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Part {
    #[serde(default)]
    pub(super) text: Option<String>,
    #[serde(default)]
    pub(super) thought: Option<bool>,
    #[serde(default)]
    pub(super) function_call: Option<FunctionCall>,
    #[serde(default)]
    pub(super) thought_signature: Option<String>,
    /// Other kinds of parts, such as executed code or generated images.
    #[serde(flatten)]
    pub(super) other: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
pub(super) struct FunctionCall {
    #[serde(default)]
    pub(super) id: Option<String>,
    #[serde(default)]
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) args: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptFeedback {
    #[serde(default)]
    pub(super) block_reason: Option<String>,
    #[serde(default)]
    pub(super) block_reason_message: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GenerateContentUsage {
    #[serde(default, deserialize_with = "count")]
    prompt_token_count: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    tool_use_prompt_token_count: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    candidates_token_count: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    thoughts_token_count: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    cached_content_token_count: Option<u64>,
    #[serde(default, deserialize_with = "count")]
    total_token_count: Option<u64>,
}

impl From<GenerateContentUsage> for UsageMetadata {
    fn from(usage: GenerateContentUsage) -> Self {
        let sum =
            |counts: [Option<u64>; 2]| counts.into_iter().flatten().fold(0, u64::saturating_add);
        let input = sum([usage.prompt_token_count, usage.tool_use_prompt_token_count]);
        let output = sum([usage.candidates_token_count, usage.thoughts_token_count]);
        let part = |name: &str, count: Option<u64>| {
            count
                .map(|count| (name.to_owned(), Value::from(count)))
                .into_iter()
                .collect()
        };
        Self {
            input_tokens: input,
            output_tokens: output,
            total_tokens: usage
                .total_token_count
                .unwrap_or_else(|| input.saturating_add(output)),
            input_token_details: part("cache_read", usage.cached_content_token_count),
            output_token_details: part("reasoning", usage.thoughts_token_count),
        }
    }
}
