//! Decodes the events of an Anthropic message stream. Pure; never panics for any input.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::SIGNATURE;
use super::event::{Delta, Head, MessagesEvent, MessagesUsage};
use crate::http::{
    AnswerParts, AnswerReader, Chunks, Completion, DecodeError, ModelOrigin, ProviderError,
    ToolCallBuilder, add_reasoning, attach_parts, has_content,
};
use deerflow_core::messages::MessageChunk;

/// Maximum number of content blocks in one answer. More are an error of the provider.
const MAX_BLOCKS: usize = 4096;

/// State of a partly decoded answer.
#[derive(Debug)]
pub(crate) struct MessagesReader {
    completion: Completion,
    origin: Arc<ModelOrigin>,
    usage: MessagesUsage,
    parts: AnswerParts,
    calls: ToolCallBuilder,
    open: BTreeMap<u64, Open>,
    started: bool,
    blocks: usize,
}

/// Content block that has started and not ended.
#[derive(Debug)]
enum Open {
    Text,
    /// Thought with its length.
    Thinking {
        bytes: usize,
        signature: String,
    },
    /// Tool call with its index among the calls. `streamed` is `true` if its arguments arrived as
    /// deltas.
    Call {
        at: u32,
        input: Value,
        streamed: bool,
    },
    /// Block that only the provider understands, with the JSON text of its input.
    ProviderSpecific {
        block: Value,
        input: String,
    },
}

impl MessagesReader {
    /// Creates a reader for the message `message_id` of `origin`.
    pub(super) fn new(message_id: &str, origin: Arc<ModelOrigin>) -> Self {
        Self {
            completion: Completion::new(message_id, origin.provider(), origin.model()),
            origin,
            usage: MessagesUsage::default(),
            parts: AnswerParts::default(),
            calls: ToolCallBuilder::default(),
            open: BTreeMap::new(),
            started: false,
            blocks: 0,
        }
    }

    fn head(&mut self, head: Head) {
        self.started = true;
        self.completion.set_model(head.model);
        self.usage.merge(head.usage);
        self.completion.set_reason(head.stop_reason);
    }

    fn begin(
        &mut self,
        index: u64,
        block: Value,
        chunk: &mut MessageChunk,
    ) -> Result<(), DecodeError> {
        self.blocks += 1;
        if self.blocks > MAX_BLOCKS {
            return Err(DecodeError::TooLong(
                "the answer has too many blocks".to_owned(),
            ));
        }
        self.started = true;
        let text = |key: &str| {
            block
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let open = match block.get("type").and_then(Value::as_str) {
            Some("text") => {
                self.emit_text(text("text"), chunk);
                Open::Text
            }
            Some("thinking") => {
                let started = text("thinking");
                let bytes = started.len();
                add_reasoning(chunk, started);
                Open::Thinking {
                    bytes,
                    signature: text("signature"),
                }
            }
            Some("tool_use") => {
                let at = self.calls.begin(&text("id"), &text("name"), chunk);
                self.parts.call(self.calls.id(at), Map::new());
                Open::Call {
                    at,
                    input: block.get("input").cloned().unwrap_or_default(),
                    streamed: false,
                }
            }
            _ => Open::ProviderSpecific {
                block,
                input: String::new(),
            },
        };
        if let Some(before) = self.open.insert(index, open) {
            self.end(before, chunk);
        }
        Ok(())
    }

    fn emit_text(&mut self, text: String, chunk: &mut MessageChunk) {
        self.parts.text(&text);
        chunk.content.push_str(&text);
    }

    fn delta(&mut self, index: u64, delta: Delta, chunk: &mut MessageChunk) {
        match self.open.get_mut(&index) {
            Some(Open::Thinking { bytes, signature }) => {
                let piece = delta.thinking.unwrap_or_default();
                *bytes += piece.len();
                add_reasoning(chunk, piece);
                signature.push_str(&delta.signature.unwrap_or_default());
            }
            Some(Open::Call { at, streamed, .. }) => {
                let piece = delta.partial_json.unwrap_or_default();
                *streamed |= !piece.is_empty();
                self.calls.add(*at, piece, chunk);
            }
            Some(Open::ProviderSpecific { input, .. }) => {
                input.push_str(&delta.partial_json.unwrap_or_default())
            }
            Some(Open::Text) | None => self.emit_text(delta.text.unwrap_or_default(), chunk),
        }
    }

    fn end(&mut self, open: Open, chunk: &mut MessageChunk) {
        match open {
            Open::Text => {}
            Open::Thinking { bytes, signature } => {
                let signed = (!signature.is_empty())
                    .then(|| (SIGNATURE.to_owned(), Value::String(signature)));
                self.parts.thought(bytes, signed.into_iter().collect());
            }
            Open::Call {
                at,
                input,
                streamed,
            } => {
                // Servers that do not stream arguments send them when the block starts.
                if !streamed && input.as_object().is_some_and(|input| !input.is_empty()) {
                    self.calls.add(at, input.to_string(), chunk);
                }
            }
            Open::ProviderSpecific { mut block, input } => {
                if let Ok(input) = serde_json::from_str::<Value>(&input) {
                    block["input"] = input;
                }
                self.parts.provider_specific(block);
            }
        }
    }
}

impl AnswerReader for MessagesReader {
    fn event(&mut self, payload: &[u8], out: &mut Chunks) -> Result<(), DecodeError> {
        let event: MessagesEvent = serde_json::from_slice(payload)?;
        let mut chunk = self.completion.chunk();
        match event.kind.as_str() {
            "message_start" => self.head(event.message.ok_or_else(|| {
                DecodeError::Malformed("a message_start event without a message".to_owned())
            })?),
            "content_block_start" => {
                let block = event.content_block.filter(Value::is_object);
                let block = block.ok_or_else(|| {
                    DecodeError::Malformed("a content block without content".to_owned())
                })?;
                self.begin(event.index.unwrap_or(0), block, &mut chunk)?;
            }
            "content_block_delta" => self.delta(
                event.index.unwrap_or(0),
                event.delta.unwrap_or_default(),
                &mut chunk,
            ),
            "content_block_stop" => {
                if let Some(open) = self.open.remove(&event.index.unwrap_or(0)) {
                    self.end(open, &mut chunk);
                }
            }
            "message_delta" => {
                self.usage.merge(event.usage);
                self.completion
                    .set_reason(event.delta.and_then(|delta| delta.stop_reason));
            }
            "message_stop" => return self.close(out),
            "error" => {
                let provider_error =
                    ProviderError::read(&serde_json::from_slice(payload)?).unwrap_or_default();
                return Err(DecodeError::ProviderError(provider_error));
            }
            // Pings and unknown events.
            _ => {}
        }
        out.extend(has_content(&chunk).then_some(chunk));
        Ok(())
    }

    fn whole(&mut self, body: &[u8], out: &mut Chunks) -> Result<(), DecodeError> {
        let body: Value = serde_json::from_slice(body)?;
        if let Some(provider_error) = ProviderError::read(&body) {
            return Err(DecodeError::ProviderError(provider_error));
        }
        let mut head: Head = serde_json::from_value(body)?;
        let mut chunk = self.completion.chunk();
        for (block, index) in head.content.take().unwrap_or_default().into_iter().zip(0..) {
            if !block.is_object() {
                return Err(DecodeError::Malformed(
                    "a content block that is not an object".to_owned(),
                ));
            }
            self.begin(index, block, &mut chunk)?;
            if let Some(open) = self.open.remove(&index) {
                self.end(open, &mut chunk);
            }
        }
        self.head(head);
        out.extend(has_content(&chunk).then_some(chunk));
        Ok(())
    }

    fn close(&mut self, out: &mut Chunks) -> Result<(), DecodeError> {
        if !self.started {
            return Err(DecodeError::NoChoices);
        }
        let mut trailing = self.completion.chunk();
        for mut open in std::mem::take(&mut self.open).into_values() {
            // The signature of an incomplete thought is invalid.
            if let Open::Thinking { signature, .. } = &mut open {
                signature.clear();
            }
            self.end(open, &mut trailing);
        }
        attach_parts(&mut trailing, &mut self.parts, &self.origin);
        self.completion.usage = self.usage.metadata();
        let default_reason = if self.calls.is_empty() {
            "end_turn"
        } else {
            "tool_use"
        };
        self.completion
            .close(trailing, "stop_reason", default_reason, out);
        Ok(())
    }

    fn completion(&self) -> &Completion {
        &self.completion
    }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
