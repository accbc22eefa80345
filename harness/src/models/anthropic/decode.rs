//! Reads the events of a message stream. Pure; never panics, whatever it is given.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::SIGNATURE;
use super::event::{Delta, Event, Head, Usage};
use crate::messages::MessageChunk;
use crate::models::http::{
    AnswerReader, CallPieces, Chunks, DecodeError, Ending, Maker, Parts, Refused, add_reasoning,
    keep_parts, says_something,
};

/// More blocks than this in one answer are a fault of the provider's stream.
const MOST_BLOCKS: usize = 4096;

/// What is known of the answer so far.
#[derive(Debug)]
pub(in crate::models) struct Reader {
    ending: Ending,
    maker: Arc<Maker>,
    usage: Usage,
    parts: Parts,
    calls: CallPieces,
    open: BTreeMap<u64, Open>,
    begun: bool,
    blocks: usize,
}

/// A block that has begun and not ended.
#[derive(Debug)]
enum Open {
    Text,
    /// A thought, by its length.
    Thinking {
        bytes: usize,
        signature: String,
    },
    /// A call, by its place among the calls, and whether its arguments have come.
    Call {
        at: u32,
        input: Value,
        streamed: bool,
    },
    /// What only the provider understands, with the JSON text that completes its input.
    Own {
        block: Value,
        input: String,
    },
}

impl Reader {
    /// A reader for the message `message_id` of `maker`.
    pub(super) fn new(message_id: &str, maker: Arc<Maker>) -> Self {
        Self {
            ending: Ending::new(message_id, maker.provider(), maker.model()),
            maker,
            usage: Usage::default(),
            parts: Parts::default(),
            calls: CallPieces::default(),
            open: BTreeMap::new(),
            begun: false,
            blocks: 0,
        }
    }

    fn head(&mut self, head: Head) {
        self.begun = true;
        self.ending.name_model(head.model);
        self.usage.take(head.usage);
        self.ending.give_reason(head.stop_reason);
    }

    fn begin(
        &mut self,
        index: u64,
        block: Value,
        chunk: &mut MessageChunk,
    ) -> Result<(), DecodeError> {
        self.blocks += 1;
        if self.blocks > MOST_BLOCKS {
            return Err(DecodeError::TooLong(
                "the answer has too many blocks".to_owned(),
            ));
        }
        self.begun = true;
        let text = |key: &str| {
            block
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let open = match block.get("type").and_then(Value::as_str) {
            Some("text") => {
                self.say(text("text"), chunk);
                Open::Text
            }
            Some("thinking") => {
                let begun = text("thinking");
                let bytes = begun.len();
                add_reasoning(chunk, begun);
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
            _ => Open::Own {
                block,
                input: String::new(),
            },
        };
        if let Some(before) = self.open.insert(index, open) {
            self.end(before, chunk);
        }
        Ok(())
    }

    fn say(&mut self, text: String, chunk: &mut MessageChunk) {
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
            Some(Open::Own { input, .. }) => {
                input.push_str(&delta.partial_json.unwrap_or_default())
            }
            Some(Open::Text) | None => self.say(delta.text.unwrap_or_default(), chunk),
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
                // Servers that do not stream arguments give them with the beginning.
                if !streamed && input.as_object().is_some_and(|input| !input.is_empty()) {
                    self.calls.add(at, input.to_string(), chunk);
                }
            }
            Open::Own { mut block, input } => {
                if let Ok(input) = serde_json::from_str::<Value>(&input) {
                    block["input"] = input;
                }
                self.parts.own(block);
            }
        }
    }
}

impl AnswerReader for Reader {
    fn event(&mut self, payload: &[u8], out: &mut Chunks) -> Result<(), DecodeError> {
        let event: Event = serde_json::from_slice(payload)?;
        let mut chunk = self.ending.chunk();
        match event.kind.as_str() {
            "message_start" => self.head(
                event
                    .message
                    .ok_or_else(|| DecodeError::Malformed("a message without a head".to_owned()))?,
            ),
            "content_block_start" => {
                let block = event.content_block.filter(Value::is_object);
                let block = block
                    .ok_or_else(|| DecodeError::Malformed("a block without content".to_owned()))?;
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
                self.usage.take(event.usage);
                self.ending
                    .give_reason(event.delta.and_then(|delta| delta.stop_reason));
            }
            "message_stop" => return self.close(out),
            "error" => {
                let refused = Refused::read(&serde_json::from_slice(payload)?).unwrap_or_default();
                return Err(DecodeError::Refused(refused));
            }
            // Pings, and what is yet to be invented.
            _ => {}
        }
        out.extend(says_something(&chunk).then_some(chunk));
        Ok(())
    }

    fn whole(&mut self, body: &[u8], out: &mut Chunks) -> Result<(), DecodeError> {
        let body: Value = serde_json::from_slice(body)?;
        if let Some(refused) = Refused::read(&body) {
            return Err(DecodeError::Refused(refused));
        }
        let mut head: Head = serde_json::from_value(body)?;
        let mut chunk = self.ending.chunk();
        for (block, index) in head.content.take().unwrap_or_default().into_iter().zip(0..) {
            if !block.is_object() {
                return Err(DecodeError::Malformed(
                    "a block that is no object".to_owned(),
                ));
            }
            self.begin(index, block, &mut chunk)?;
            if let Some(open) = self.open.remove(&index) {
                self.end(open, &mut chunk);
            }
        }
        self.head(head);
        out.extend(says_something(&chunk).then_some(chunk));
        Ok(())
    }

    fn close(&mut self, out: &mut Chunks) -> Result<(), DecodeError> {
        if !self.begun {
            return Err(DecodeError::NoChoices);
        }
        let mut late = self.ending.chunk();
        for mut open in std::mem::take(&mut self.open).into_values() {
            // What signs a thought that did not end is not whole either.
            if let Open::Thinking { signature, .. } = &mut open {
                signature.clear();
            }
            self.end(open, &mut late);
        }
        keep_parts(&mut late, &mut self.parts, &self.maker);
        self.ending.usage = self.usage.metadata();
        let default_reason = if self.calls.is_empty() {
            "end_turn"
        } else {
            "tool_use"
        };
        self.ending.close(late, "stop_reason", default_reason, out);
        Ok(())
    }

    fn ending(&self) -> &Ending {
        &self.ending
    }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
