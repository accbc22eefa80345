//! Decodes the events of a responses stream. Pure; never panics for any input.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::event::{Response, ResponsesEvent};
use crate::http::{
    AnswerParts, AnswerReader, Chunks, Completion, DecodeError, ModelOrigin, ProviderError,
    ToolCallBuilder, add_reasoning, attach_parts, has_content,
};
use deerflow_core::messages::MessageChunk;

/// Maximum number of items in one answer. More are an error of the provider.
const MAX_ITEMS: usize = 4096;

/// State of a partly decoded answer.
#[derive(Debug)]
pub(crate) struct ResponsesReader {
    completion: Completion,
    origin: Arc<ModelOrigin>,
    parts: AnswerParts,
    calls: ToolCallBuilder,
    /// Items by their index in the output.
    items: BTreeMap<u64, Item>,
    started: bool,
    /// `true` if reasoning was emitted, so that the next paragraph needs a separator.
    has_reasoning: bool,
}

/// Announced item, and the part of it that was already emitted.
#[derive(Debug)]
enum Item {
    Message { emitted: bool },
    Call { at: u32, streamed: bool },
    Reasoning { emitted: bool },
    Other,
}

impl Item {
    /// Reports whether the item has this type.
    fn is(&self, kind: &Value) -> bool {
        match self {
            Self::Message { .. } => kind == "message",
            Self::Call { .. } => kind == "function_call",
            Self::Reasoning { .. } => kind == "reasoning",
            Self::Other => true,
        }
    }
}

impl ResponsesReader {
    /// Creates a reader for the message `message_id` of `origin`.
    pub(super) fn new(message_id: &str, origin: Arc<ModelOrigin>) -> Self {
        Self {
            completion: Completion::new(message_id, origin.provider(), origin.model()),
            origin,
            parts: AnswerParts::default(),
            calls: ToolCallBuilder::default(),
            items: BTreeMap::new(),
            started: false,
            has_reasoning: false,
        }
    }

    fn read_event(&mut self, event: ResponsesEvent, out: &mut Chunks) -> Result<(), DecodeError> {
        let mut chunk = self.completion.chunk();
        let index = event.output_index.unwrap_or(0);
        match event.kind.as_str() {
            "response.created" | "response.in_progress" => self.started = true,
            "response.output_item.added" => self.begin(index, event.item.as_ref(), &mut chunk)?,
            "response.output_text.delta" | "response.refusal.delta" => {
                self.set_item(index, Item::Message { emitted: true })?;
                self.emit_text(event.text(), &mut chunk);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.set_item(index, Item::Reasoning { emitted: true })?;
                self.emit_reasoning(event.text(), &mut chunk);
            }
            "response.reasoning_summary_part.added"
                if event.summary_index.unwrap_or(0) > 0 && self.has_reasoning =>
            {
                add_reasoning(&mut chunk, "\n\n".to_owned());
            }
            "response.function_call_arguments.delta" => {
                if let Some(Item::Call { at, streamed }) = self.items.get_mut(&index) {
                    *streamed |= !event.text().is_empty();
                    self.calls.add(*at, event.text().to_owned(), &mut chunk);
                }
            }
            "response.output_item.done" => self.end(index, event.item, &mut chunk)?,
            "response.completed" | "response.incomplete" | "response.failed" | "response.done" => {
                let response = event.response.ok_or_else(|| {
                    DecodeError::Malformed("an end event without a response".to_owned())
                })?;
                self.finish(response)?;
                return self.close(out);
            }
            // Unknown events, and events that repeat the content of deltas.
            _ => {}
        }
        out.extend(has_content(&chunk).then_some(chunk));
        Ok(())
    }

    fn begin(
        &mut self,
        index: u64,
        item: Option<&Value>,
        chunk: &mut MessageChunk,
    ) -> Result<(), DecodeError> {
        self.started = true;
        let text = |key: &str| {
            item.and_then(|item| item.get(key)?.as_str())
                .unwrap_or_default()
        };
        let started = match text("type") {
            "message" => Item::Message { emitted: false },
            "function_call" => {
                let at = self.calls.begin(text("call_id"), text("name"), chunk);
                self.parts.call(self.calls.id(at), Map::new());
                Item::Call {
                    at,
                    streamed: false,
                }
            }
            "reasoning" => Item::Reasoning { emitted: false },
            _ => Item::Other,
        };
        self.set_item(index, started)
    }

    /// Sets the state of the item at `index`. Some servers do not announce items.
    fn set_item(&mut self, index: u64, item: Item) -> Result<(), DecodeError> {
        if self.items.len() >= MAX_ITEMS && !self.items.contains_key(&index) {
            return Err(DecodeError::TooLong(
                "the answer has too many items".to_owned(),
            ));
        }
        self.items.insert(index, item);
        Ok(())
    }

    /// Reads a complete item. Content that deltas have already delivered is not emitted again.
    fn end(
        &mut self,
        index: u64,
        item: Option<Value>,
        chunk: &mut MessageChunk,
    ) -> Result<(), DecodeError> {
        let Some(item) = item.filter(Value::is_object) else {
            return Ok(());
        };
        // If a server sends no index, all items have index 0.
        if !self
            .items
            .get(&index)
            .is_some_and(|known| known.is(&item["type"]))
        {
            self.begin(index, Some(&item), chunk)?;
        }
        match self.items.get(&index) {
            Some(Item::Message { emitted: false }) => {
                self.emit_text(&texts(&item, "content"), chunk)
            }
            Some(Item::Call {
                at,
                streamed: false,
            }) => {
                let arguments = item
                    .get("arguments")
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned();
                self.calls.add(*at, arguments, chunk);
            }
            Some(Item::Reasoning { emitted }) => {
                if !emitted {
                    self.emit_reasoning(
                        &(texts(&item, "summary") + &texts(&item, "content")),
                        chunk,
                    );
                }
                self.store_reasoning(&item);
            }
            _ => {}
        }
        Ok(())
    }

    /// Stores a reasoning item for the next call. An item without encrypted content is useless,
    /// because the provider stores no state.
    fn store_reasoning(&mut self, item: &Value) {
        if item.get("encrypted_content").is_some_and(Value::is_string) {
            let summary = item.get("summary").cloned().unwrap_or_else(|| json!([]));
            let own = json!({"type": "reasoning", "id": item["id"], "summary": summary, "encrypted_content": item["encrypted_content"]});
            self.parts.provider_specific(own);
        }
    }

    fn emit_text(&mut self, text: &str, chunk: &mut MessageChunk) {
        self.parts.text(text);
        chunk.content.push_str(text);
    }

    fn emit_reasoning(&mut self, text: &str, chunk: &mut MessageChunk) {
        self.has_reasoning |= !text.is_empty();
        add_reasoning(chunk, text.to_owned());
    }

    fn finish(&mut self, response: Response) -> Result<(), DecodeError> {
        self.started = true;
        self.completion.set_model(response.model);
        self.completion.usage = response.usage.map(Into::into);
        let details = response
            .incomplete_details
            .as_ref()
            .and_then(|details| details.get("reason")?.as_str());
        let emit_reasoning = match (response.status.as_deref(), details) {
            (Some("failed" | "cancelled"), _) => {
                let provider_error = ProviderError::read(
                    &json!({"error": response.error.unwrap_or_else(|| json!({}))}),
                )
                .unwrap_or_default();
                return Err(DecodeError::ProviderError(provider_error));
            }
            (_, Some("max_output_tokens")) => "length",
            (_, Some(other)) => other,
            _ if self.calls.is_empty() => "stop",
            _ => "tool_calls",
        };
        self.completion.set_reason(Some(emit_reasoning.to_owned()));
        Ok(())
    }
}

/// Returns the joined text of an item's parts.
fn texts(item: &Value, key: &str) -> String {
    let parts = item
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    parts
        .filter_map(|part| part.get("text").or(part.get("refusal"))?.as_str())
        .collect()
}

impl AnswerReader for ResponsesReader {
    fn event(&mut self, payload: &[u8], out: &mut Chunks) -> Result<(), DecodeError> {
        if payload == b"[DONE]" {
            return if self.is_finished() {
                self.close(out)
            } else {
                Err(DecodeError::Truncated)
            };
        }
        let event: ResponsesEvent = serde_json::from_slice(payload)?;
        if event.kind == "error" || event.kind.is_empty() {
            let emitted = ProviderError::read(&serde_json::from_slice(payload)?);
            return emitted.map_or(Ok(()), |provider_error| {
                Err(DecodeError::ProviderError(provider_error))
            });
        }
        self.read_event(event, out)
    }

    fn whole(&mut self, body: &[u8], out: &mut Chunks) -> Result<(), DecodeError> {
        let body: Value = serde_json::from_slice(body)?;
        // An error next to a status belongs to a failed response.
        if body.get("status").is_none()
            && let Some(provider_error) = ProviderError::read(&body)
        {
            return Err(DecodeError::ProviderError(provider_error));
        }
        let mut response: Response = serde_json::from_value(body)?;
        let mut chunk = self.completion.chunk();
        for (item, index) in response
            .output
            .take()
            .unwrap_or_default()
            .into_iter()
            .zip(0..)
        {
            self.end(index, Some(item), &mut chunk)?;
        }
        self.finish(response)?;
        out.extend(has_content(&chunk).then_some(chunk));
        Ok(())
    }

    fn close(&mut self, out: &mut Chunks) -> Result<(), DecodeError> {
        if !self.started {
            return Err(DecodeError::NoChoices);
        }
        let mut trailing = self.completion.chunk();
        attach_parts(&mut trailing, &mut self.parts, &self.origin);
        self.completion
            .close(trailing, "finish_reason", "stop", out);
        Ok(())
    }

    fn completion(&self) -> &Completion {
        &self.completion
    }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
