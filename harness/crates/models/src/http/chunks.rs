//! Chunks of an answer, and what readers add to them.

use serde_json::Value;

use super::answer_parts::{AnswerParts, ModelOrigin, PROVIDER_PARTS_KWARG};
use deerflow_core::messages::{MessageChunk, kwargs};

/// Output of a reader.
pub(crate) type Chunks = Vec<MessageChunk>;

/// Appends a piece of reasoning. Ignores an empty one.
pub(crate) fn add_reasoning(chunk: &mut MessageChunk, piece: String) {
    if piece.is_empty() {
        return;
    }
    match chunk.additional_kwargs.get_mut(kwargs::REASONING_CONTENT) {
        Some(Value::String(reasoning)) => reasoning.push_str(&piece),
        _ => {
            chunk
                .additional_kwargs
                .insert(kwargs::REASONING_CONTENT.to_owned(), Value::String(piece));
        }
    }
}

/// Adds the collected parts to the chunk if the provider requires them back.
pub(crate) fn attach_parts(
    trailing: &mut MessageChunk,
    parts: &mut AnswerParts,
    origin: &ModelOrigin,
) {
    if let Some(value) = std::mem::take(parts).into_kwarg(origin) {
        trailing
            .additional_kwargs
            .insert(PROVIDER_PARTS_KWARG.to_owned(), value);
    }
}

/// Reports whether the chunk has any content.
pub(crate) fn has_content(chunk: &MessageChunk) -> bool {
    !chunk.content.is_empty()
        || !chunk.additional_kwargs.is_empty()
        || !chunk.tool_call_chunks.is_empty()
}
