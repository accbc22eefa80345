//! Bounds the text of one answer: an answer that reaches its limit ends there, as at a provider's own limit of tokens.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use serde_json::{Map, Value, json};

use super::{ChatModel, ModelEntry, ModelError, ModelInfo, ModelRequest, ModelStream};
use crate::messages::{MessageChunk, kwargs};

/// Most bytes of an answer whose entry does not say it.
pub(super) const LONGEST_ANSWER: usize = 2 << 20;

/// A model whose answers hold at most so many bytes of text, reasoning and arguments together.
#[derive(Debug)]
pub(super) struct Bounded {
    model: Arc<dyn ChatModel>,
    most: usize,
}

impl Bounded {
    /// `model` with the limit of its entry; the model itself where the limit is 0.
    pub(super) fn by(entry: &ModelEntry, model: Arc<dyn ChatModel>) -> Arc<dyn ChatModel> {
        match entry.max_answer_bytes.unwrap_or(LONGEST_ANSWER) {
            0 => model,
            most => Arc::new(Self { model, most }),
        }
    }

    /// The chunk that ends an answer at its limit.
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
impl ChatModel for Bounded {
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
        let answer = self.model.stream(request).await?;
        let most = self.most;
        let name = self.info().name.clone();
        Ok(Box::pin(stream::unfold(
            Answer::Open {
                answer,
                left: self.most,
            },
            move |state| {
                let (end, name) = (end.clone(), name.clone());
                async move {
                    let Answer::Open { mut answer, left } = state else {
                        return if matches!(state, Answer::Cut) {
                            Some((Ok(end), Answer::Ended))
                        } else {
                            None
                        };
                    };
                    let mut chunk = match answer.next().await? {
                        Ok(chunk) => chunk,
                        Err(error) => return Some((Err(error), Answer::Open { answer, left })),
                    };
                    let rest = keep(&mut chunk, left);
                    if let Some(left) = rest {
                        return Some((Ok(chunk), Answer::Open { answer, left }));
                    }
                    // Dropping the provider's stream closes the connection, which ends its work.
                    drop(answer);
                    tracing::warn!(model = %name, most_bytes = most, "an answer reached its limit and was ended");
                    chunk.response_metadata.clear();
                    chunk.chunk_position = None;
                    Some((Ok(chunk), Answer::Cut))
                }
            },
        )))
    }
}

/// Where an answer stands.
enum Answer {
    /// The provider writes, and may write so many bytes more.
    Open { answer: ModelStream, left: usize },
    /// It has reached its limit, and its end is still to be told.
    Cut,
    /// Nothing follows.
    Ended,
}

/// Cuts a chunk to `left` bytes; the bytes that are left then, or nothing when it had to be cut.
fn keep(chunk: &mut MessageChunk, left: usize) -> Option<usize> {
    let mut left = Some(left);
    if let Some(Value::String(reasoning)) =
        chunk.additional_kwargs.get_mut(kwargs::REASONING_CONTENT)
    {
        cut(reasoning, &mut left);
    }
    cut(&mut chunk.content, &mut left);
    chunk
        .tool_call_chunks
        .iter_mut()
        .filter_map(|piece| piece.args.as_mut())
        .for_each(|args| cut(args, &mut left));
    left
}

/// Takes the bytes of a text off those that are left, and cuts the text where they do not suffice; all text behind that goes.
fn cut(text: &mut String, left: &mut Option<usize>) {
    match left.and_then(|bytes| bytes.checked_sub(text.len())) {
        Some(rest) => *left = Some(rest),
        None if left.is_none() && text.is_empty() => {}
        None => {
            let most = left.take().unwrap_or_default();
            let end = (0..=most).rev().find(|end| text.is_char_boundary(*end));
            text.truncate(end.unwrap_or_default());
        }
    }
}

#[cfg(test)]
#[path = "bounded_tests.rs"]
mod tests;
