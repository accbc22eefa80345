//! What every answer says at its end, whatever the wire: what it cost, why it ended, and who gave it.

use serde_json::{Map, Value};

use super::decoder::Chunks;
use super::parts::{Maker, PROVIDER_PARTS_KWARG, Parts};
use crate::messages::{MessageChunk, UsageMetadata, kwargs};

/// What is known of an answer's end so far.
#[derive(Debug)]
pub(in crate::models) struct Ending {
    message_id: String,
    provider: &'static str,
    /// The model's name as the provider gives it, or the one that was asked for.
    pub(in crate::models) model: String,
    /// The last count is the whole one, also where every event brings a running total.
    pub(in crate::models) usage: Option<UsageMetadata>,
    /// In the provider's own word.
    pub(in crate::models) reason: Option<String>,
    closed: bool,
}

impl Ending {
    /// The end of the message `message_id`, of `provider` and its `model`, with nothing known.
    pub(in crate::models) fn new(
        message_id: impl Into<String>,
        provider: &'static str,
        model: impl Into<String>,
    ) -> Self {
        Self {
            message_id: message_id.into(),
            provider,
            model: model.into(),
            usage: None,
            reason: None,
            closed: false,
        }
    }

    /// A chunk of this answer that says nothing yet.
    pub(in crate::models) fn chunk(&self) -> MessageChunk {
        MessageChunk::empty(self.message_id.clone())
    }

    /// Takes the name that the provider gives the model.
    pub(in crate::models) fn name_model(&mut self, name: Option<String>) {
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            self.model = name;
        }
    }

    /// Takes the reason of the end.
    pub(in crate::models) fn give_reason(&mut self, reason: Option<String>) {
        if let Some(reason) = reason.filter(|reason| !reason.is_empty()) {
            self.reason = Some(reason);
        }
    }

    /// Whether the closing chunk was said.
    pub(in crate::models) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Says `late` if it says something, the usage in a chunk of its own, then the closing chunk, with the reason (or
    /// `default_reason`) under `reason_key`.
    pub(in crate::models) fn close(
        &mut self,
        late: MessageChunk,
        reason_key: &str,
        default_reason: &str,
        out: &mut Chunks,
    ) {
        self.closed = true;
        out.extend(says_something(&late).then_some(late));
        if let Some(usage) = self.usage.take() {
            out.push(MessageChunk {
                usage_metadata: Some(usage.believable()),
                ..self.chunk()
            });
        }
        let reason = self
            .reason
            .clone()
            .unwrap_or_else(|| default_reason.to_owned());
        let facts = [
            (reason_key, reason),
            ("model_name", self.model.clone()),
            ("model_provider", self.provider.to_owned()),
        ];
        out.push(MessageChunk {
            response_metadata: facts
                .into_iter()
                .map(|(key, value)| (key.to_owned(), Value::String(value)))
                .collect::<Map<_, _>>(),
            chunk_position: Some("last"),
            ..self.chunk()
        });
    }
}

/// Adds a piece of reasoning, if there is any.
pub(in crate::models) fn add_reasoning(chunk: &mut MessageChunk, piece: String) {
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

/// Adds what only the provider understands of the answer, if there is any.
pub(in crate::models) fn keep_parts(late: &mut MessageChunk, parts: &mut Parts, maker: &Maker) {
    if let Some(kept) = std::mem::take(parts).into_kwarg(maker) {
        late.additional_kwargs
            .insert(PROVIDER_PARTS_KWARG.to_owned(), kept);
    }
}

/// Whether anybody would miss the chunk.
pub(in crate::models) fn says_something(chunk: &MessageChunk) -> bool {
    !chunk.content.is_empty()
        || !chunk.additional_kwargs.is_empty()
        || !chunk.tool_call_chunks.is_empty()
}
