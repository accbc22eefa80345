//! Reads the events of a response stream. Pure; never panics, whatever it is given.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::event::{Event, Response};
use crate::messages::MessageChunk;
use crate::models::http::{
    AnswerReader, CallPieces, Chunks, DecodeError, Ending, Maker, Parts, Refused, add_reasoning,
    keep_parts, says_something,
};

/// More items than this in one answer are a fault of the provider's stream.
const MOST_ITEMS: usize = 4096;

/// What is known of the answer so far.
#[derive(Debug)]
pub(in crate::models) struct Reader {
    ending: Ending,
    maker: Arc<Maker>,
    parts: Parts,
    calls: CallPieces,
    /// By their place in the output.
    items: BTreeMap<u64, Item>,
    begun: bool,
    /// Whether any reasoning was shown, so that the next paragraph of it stands apart.
    reasoned: bool,
}

/// An item that was announced, and what of it was said.
#[derive(Debug)]
enum Item {
    Message { said: bool },
    Call { at: u32, streamed: bool },
    Reasoning { shown: bool },
    Other,
}

impl Item {
    /// Whether it is of this type.
    fn is(&self, kind: &Value) -> bool {
        match self {
            Self::Message { .. } => kind == "message",
            Self::Call { .. } => kind == "function_call",
            Self::Reasoning { .. } => kind == "reasoning",
            Self::Other => true,
        }
    }
}

impl Reader {
    /// A reader for the message `message_id` of `maker`.
    pub(super) fn new(message_id: &str, maker: Arc<Maker>) -> Self {
        Self {
            ending: Ending::new(message_id, maker.provider(), maker.model()),
            maker,
            parts: Parts::default(),
            calls: CallPieces::default(),
            items: BTreeMap::new(),
            begun: false,
            reasoned: false,
        }
    }

    fn take(&mut self, event: Event, out: &mut Chunks) -> Result<(), DecodeError> {
        let mut chunk = self.ending.chunk();
        let index = event.output_index.unwrap_or(0);
        match event.kind.as_str() {
            "response.created" | "response.in_progress" => self.begun = true,
            "response.output_item.added" => self.begin(index, event.item.as_ref(), &mut chunk)?,
            "response.output_text.delta" | "response.refusal.delta" => {
                self.place(index, Item::Message { said: true })?;
                self.say(event.text(), &mut chunk);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.place(index, Item::Reasoning { shown: true })?;
                self.reason(event.text(), &mut chunk);
            }
            "response.reasoning_summary_part.added"
                if event.summary_index.unwrap_or(0) > 0 && self.reasoned =>
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
                    DecodeError::Malformed("an end without a response".to_owned())
                })?;
                self.finish(response)?;
                return self.close(out);
            }
            // What is yet to be invented, and what repeats what deltas said.
            _ => {}
        }
        out.extend(says_something(&chunk).then_some(chunk));
        Ok(())
    }

    fn begin(
        &mut self,
        index: u64,
        item: Option<&Value>,
        chunk: &mut MessageChunk,
    ) -> Result<(), DecodeError> {
        self.begun = true;
        let text = |key: &str| {
            item.and_then(|item| item.get(key)?.as_str())
                .unwrap_or_default()
        };
        let begun = match text("type") {
            "message" => Item::Message { said: false },
            "function_call" => {
                let at = self.calls.begin(text("call_id"), text("name"), chunk);
                self.parts.call(self.calls.id(at), Map::new());
                Item::Call {
                    at,
                    streamed: false,
                }
            }
            "reasoning" => Item::Reasoning { shown: false },
            _ => Item::Other,
        };
        self.place(index, begun)
    }

    /// What is known of the item at `index`, which some servers do not announce.
    fn place(&mut self, index: u64, item: Item) -> Result<(), DecodeError> {
        if self.items.len() >= MOST_ITEMS && !self.items.contains_key(&index) {
            return Err(DecodeError::TooLong(
                "the answer has too many items".to_owned(),
            ));
        }
        self.items.insert(index, item);
        Ok(())
    }

    /// Takes a whole item: what deltas have said of it already is not said again.
    fn end(
        &mut self,
        index: u64,
        item: Option<Value>,
        chunk: &mut MessageChunk,
    ) -> Result<(), DecodeError> {
        let Some(item) = item.filter(Value::is_object) else {
            return Ok(());
        };
        // Where a server gives no places, all items have the same.
        if !self
            .items
            .get(&index)
            .is_some_and(|known| known.is(&item["type"]))
        {
            self.begin(index, Some(&item), chunk)?;
        }
        match self.items.get(&index) {
            Some(Item::Message { said: false }) => self.say(&texts(&item, "content"), chunk),
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
            Some(Item::Reasoning { shown }) => {
                if !shown {
                    self.reason(&(texts(&item, "summary") + &texts(&item, "content")), chunk);
                }
                self.keep(&item);
            }
            _ => {}
        }
        Ok(())
    }

    /// Keeps a reasoning item for the next call. Without its encrypted content nobody could read it: nothing is stored there.
    fn keep(&mut self, item: &Value) {
        if item.get("encrypted_content").is_some_and(Value::is_string) {
            let summary = item.get("summary").cloned().unwrap_or_else(|| json!([]));
            let own = json!({"type": "reasoning", "id": item["id"], "summary": summary, "encrypted_content": item["encrypted_content"]});
            self.parts.own(own);
        }
    }

    fn say(&mut self, text: &str, chunk: &mut MessageChunk) {
        self.parts.text(text);
        chunk.content.push_str(text);
    }

    fn reason(&mut self, text: &str, chunk: &mut MessageChunk) {
        self.reasoned |= !text.is_empty();
        add_reasoning(chunk, text.to_owned());
    }

    fn finish(&mut self, response: Response) -> Result<(), DecodeError> {
        self.begun = true;
        self.ending.name_model(response.model);
        self.ending.usage = response.usage.map(Into::into);
        let details = response
            .incomplete_details
            .as_ref()
            .and_then(|details| details.get("reason")?.as_str());
        let reason = match (response.status.as_deref(), details) {
            (Some("failed" | "cancelled"), _) => {
                let refused =
                    Refused::read(&json!({"error": response.error.unwrap_or_else(|| json!({}))}))
                        .unwrap_or_default();
                return Err(DecodeError::Refused(refused));
            }
            (_, Some("max_output_tokens")) => "length",
            (_, Some(other)) => other,
            _ if self.calls.is_empty() => "stop",
            _ => "tool_calls",
        };
        self.ending.give_reason(Some(reason.to_owned()));
        Ok(())
    }
}

/// The text of an item's parts.
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

impl AnswerReader for Reader {
    fn event(&mut self, payload: &[u8], out: &mut Chunks) -> Result<(), DecodeError> {
        if payload == b"[DONE]" {
            return if self.is_finished() {
                self.close(out)
            } else {
                Err(DecodeError::Cut)
            };
        }
        let event: Event = serde_json::from_slice(payload)?;
        if event.kind == "error" || event.kind.is_empty() {
            let said = Refused::read(&serde_json::from_slice(payload)?);
            return said.map_or(Ok(()), |refused| Err(DecodeError::Refused(refused)));
        }
        self.take(event, out)
    }

    fn whole(&mut self, body: &[u8], out: &mut Chunks) -> Result<(), DecodeError> {
        let body: Value = serde_json::from_slice(body)?;
        // An error beside a status belongs to a response that failed.
        if body.get("status").is_none()
            && let Some(refused) = Refused::read(&body)
        {
            return Err(DecodeError::Refused(refused));
        }
        let mut response: Response = serde_json::from_value(body)?;
        let mut chunk = self.ending.chunk();
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
        out.extend(says_something(&chunk).then_some(chunk));
        Ok(())
    }

    fn close(&mut self, out: &mut Chunks) -> Result<(), DecodeError> {
        if !self.begun {
            return Err(DecodeError::NoChoices);
        }
        let mut late = self.ending.chunk();
        keep_parts(&mut late, &mut self.parts, &self.maker);
        self.ending.close(late, "finish_reason", "stop", out);
        Ok(())
    }

    fn ending(&self) -> &Ending {
        &self.ending
    }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
