//! Limits the size of one answer. An answer that reaches its limit ends there, like one that
//! reaches the provider's token limit.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use serde_json::{Map, Value, json};

use super::{ChatModel, ModelEntry, ModelError, ModelInfo, ModelRequest, ModelStream};
use deerflow_core::messages::{MessageChunk, kwargs};

/// Maximum size of an answer, in bytes, if the entry does not set one.
pub(super) const DEFAULT_MAX_ANSWER_BYTES: usize = 2 << 20;

/// Model whose answers are truncated to `max_bytes` of text, reasoning and arguments together.
#[derive(Debug)]
pub(super) struct SizeLimited {
    model: Arc<dyn ChatModel>,
    max_bytes: usize,
}

impl SizeLimited {
    /// Wraps `model` with the limit of its entry. Returns `model` itself if the limit is 0.
    pub(super) fn wrap(entry: &ModelEntry, model: Arc<dyn ChatModel>) -> Arc<dyn ChatModel> {
        match entry.max_answer_bytes.unwrap_or(DEFAULT_MAX_ANSWER_BYTES) {
            0 => model,
            max_bytes => Arc::new(Self { model, max_bytes }),
        }
    }

    /// Returns the chunk that ends a truncated answer.
    fn end(&self, id: &str) -> MessageChunk {
        let info = self.info();
        let facts = [
            ("finish_reason", "length"),
            ("model_name", &info.model),
            ("model_provider", &info.provider),
        ];
        MessageChunk {
            response_metadata: facts
                .into_iter()
                .map(|(key, fact)| (key.to_owned(), json!(fact)))
                .collect::<Map<_, _>>(),
            chunk_position: Some("last"),
            ..MessageChunk::empty(id)
        }
    }
}

#[async_trait]
impl ChatModel for SizeLimited {
    fn info(&self) -> &ModelInfo {
        self.model.info()
    }

    fn fallbacks(&self) -> &[Arc<dyn ChatModel>] {
        self.model.fallbacks()
    }

    fn max_attempts(&self) -> Option<u32> {
        self.model.max_attempts()
    }

    fn is_full(&self) -> bool {
        self.model.is_full()
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let end = self.end(&request.message_id);
        let answer = LimitedAnswer {
            answer: Some(self.model.stream(request).await?),
            remaining: self.max_bytes,
            end: Some(end),
            limit: self.max_bytes,
            name: self.info().name.clone(),
        };
        Ok(Box::pin(stream::unfold(answer, |mut answer| async move {
            let chunk = answer.next().await?;
            Some((chunk, answer))
        })))
    }
}

/// Answer that is truncated.
struct LimitedAnswer {
    /// Stream of the provider; `None` after the limit was reached.
    answer: Option<ModelStream>,
    /// Number of bytes that the answer may still contain.
    remaining: usize,
    /// Chunk that ends a truncated answer, until it is sent.
    end: Option<MessageChunk>,
    limit: usize,
    /// Name of the model entry.
    name: String,
}

impl LimitedAnswer {
    async fn next(&mut self) -> Option<Result<MessageChunk, ModelError>> {
        let Some(answer) = &mut self.answer else {
            return self.end.take().map(Ok);
        };
        let mut chunk = match answer.next().await? {
            Ok(chunk) => chunk,
            Err(error) => return Some(Err(error)),
        };
        match truncate_chunk(&mut chunk, self.remaining) {
            Some(remaining) => self.remaining = remaining,
            None => {
                // Dropping the provider's stream closes the connection, which cancels the
                // provider's work.
                self.answer = None;
                tracing::warn!(model = %self.name, max_bytes = self.limit, "answer reached its size limit and was truncated");
                chunk.response_metadata.clear();
                chunk.chunk_position = None;
            }
        }
        Some(Ok(chunk))
    }
}

/// Truncates a chunk to `remaining` bytes. Returns the number of bytes that are still allowed, or
/// `None` if the chunk was truncated.
fn truncate_chunk(chunk: &mut MessageChunk, remaining: usize) -> Option<usize> {
    let mut remaining = Some(remaining);
    if let Some(Value::String(reasoning)) =
        chunk.additional_kwargs.get_mut(kwargs::REASONING_CONTENT)
    {
        truncate_text(reasoning, &mut remaining);
    }
    truncate_text(&mut chunk.content, &mut remaining);
    chunk
        .tool_call_chunks
        .iter_mut()
        .filter_map(|piece| piece.args.as_mut())
        .for_each(|args| truncate_text(args, &mut remaining));
    remaining
}

/// Subtracts the length of a text from `remaining`. If it is too long, truncates it and clears
/// `remaining`, which removes all later text.
fn truncate_text(text: &mut String, remaining: &mut Option<usize>) {
    match remaining.and_then(|bytes| bytes.checked_sub(text.len())) {
        Some(remaining_after) => *remaining = Some(remaining_after),
        None if remaining.is_none() && text.is_empty() => {}
        None => {
            let max_bytes = remaining.take().unwrap_or_default();
            let end = (0..=max_bytes)
                .rev()
                .find(|end| text.is_char_boundary(*end));
            text.truncate(end.unwrap_or_default());
        }
    }
}

#[cfg(test)]
#[path = "size_limit_tests.rs"]
mod tests;
