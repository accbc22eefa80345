//! End of an answer, the same for all wires: usage, finish reason and origin.

use serde_json::{Map, Value};

use super::chunks::{Chunks, has_content};
use deerflow_core::messages::{MessageChunk, UsageMetadata};

/// Facts about the end of an answer, collected while it is streamed.
#[derive(Debug)]
pub(crate) struct Completion {
    message_id: String,
    provider: &'static str,
    /// Model's name as reported by the provider, or the requested one.
    pub(crate) model: String,
    /// Latest usage. Where every event reports a running total, the last one is complete.
    pub(crate) usage: Option<UsageMetadata>,
    /// Finish reason in the provider's terms.
    pub(crate) reason: Option<String>,
    closed: bool,
}

impl Completion {
    /// Creates the state for the message `message_id` of `provider` and its `model`.
    pub(crate) fn new(
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

    /// Returns an empty chunk of this answer.
    pub(crate) fn chunk(&self) -> MessageChunk {
        MessageChunk::empty(self.message_id.clone())
    }

    /// Stores the model's name that the provider reports.
    pub(crate) fn set_model(&mut self, name: Option<impl AsRef<str> + Into<String>>) {
        let is_new = |name: &str| !name.is_empty() && name != self.model;
        if let Some(name) = name.filter(|name| is_new(name.as_ref())) {
            self.model = name.into();
        }
    }

    /// Stores the finish reason.
    pub(crate) fn set_reason(&mut self, reason: Option<String>) {
        if let Some(reason) = reason.filter(|reason| !reason.is_empty()) {
            self.reason = Some(reason);
        }
    }

    /// Reports whether the closing chunk was emitted.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Emits `trailing` if it has content, the usage in a separate chunk, and then the closing chunk
    /// with the finish reason (or `default_reason`) under `reason_key`.
    pub(crate) fn close(
        &mut self,
        trailing: MessageChunk,
        reason_key: &str,
        default_reason: &str,
        out: &mut Chunks,
    ) {
        self.closed = true;
        out.extend(has_content(&trailing).then_some(trailing));
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
