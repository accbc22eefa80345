//! Converts the frames of a run to client events. Nothing is emitted twice, and tokens are counted
//! once per message.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::event::{EventKind, StreamEvent};
use crate::messages::{Content, UsageMetadata};
use crate::runtime::runs::RunStatus;

/// State of the conversion: the parts of a run that were emitted so far.
#[derive(Debug, Default)]
pub(super) struct EventAdapter {
    /// Ids of the messages before the run, once known; these are not emitted.
    initial_messages: Option<HashSet<String>>,
    /// Emitted text of each answer, by message id.
    texts: HashMap<String, String>,
    /// Emitted `additional_kwargs` of each answer, by message id.
    extras: HashMap<String, Map<String, Value>>,
    /// Ids of the tool messages that were emitted.
    emitted_results: HashSet<String>,
    /// Ids of the messages with emitted tool calls.
    emitted_calls: HashSet<String>,
    /// Token usage of each message of the run.
    usage: BTreeMap<String, UsageMetadata>,
    /// Open interrupts in the newest state: `[{id, value}]`.
    questions: Vec<Value>,
}

impl EventAdapter {
    /// Converts a frame to events.
    pub(super) fn on_frame(&mut self, name: &str, data: Value) -> Vec<StreamEvent> {
        match name {
            "messages" => self.fragment(data).into_iter().collect(),
            "values" => self.values(&data),
            "custom" => vec![StreamEvent {
                kind: EventKind::Custom,
                data,
            }],
            _ => Vec::new(),
        }
    }

    /// Returns the final event.
    pub(super) fn end(&self, status: RunStatus) -> StreamEvent {
        let sum = |count: fn(&UsageMetadata) -> u64| {
            self.usage.values().map(count).fold(0, u64::saturating_add)
        };
        let usage = json!({
            "input_tokens": sum(|usage| usage.input_tokens),
            "output_tokens": sum(|usage| usage.output_tokens),
            "total_tokens": sum(UsageMetadata::total),
        });
        let mut data = json!({ "usage": usage, "status": status });
        if !self.questions.is_empty() {
            data["questions"] = self.questions.clone().into();
        }
        StreamEvent {
            kind: EventKind::End,
            data,
        }
    }

    /// Converts `[message or fragment, metadata]`.
    fn fragment(&mut self, mut data: Value) -> Option<StreamEvent> {
        let message = data.get_mut(0)?.take();
        match message["type"].as_str()? {
            "AIMessageChunk" => {
                let id = message["id"].as_str()?.to_owned();
                self.texts
                    .entry(id.clone())
                    .or_default()
                    .push_str(&Content::text_in(&message["content"]));
                self.count(&id, &message);
                // Most fragments have no `additional_kwargs`, so no entry is created for them.
                if message["additional_kwargs"]
                    .as_object()
                    .is_some_and(|extras| !extras.is_empty())
                {
                    merge_extras(
                        self.extras.entry(id.clone()).or_default(),
                        &message["additional_kwargs"],
                    );
                }
                message_event(&id, &message)
            }
            _ => self.message(&message),
        }
    }

    /// Emits a whole message, or the part of it that was not emitted yet: guards append to streamed
    /// answers.
    fn message(&mut self, message: &Value) -> Option<StreamEvent> {
        let id = message["id"].as_str().filter(|id| self.is_new(id))?;
        match message["type"].as_str()? {
            "ai" => {
                self.count(id, message);
                let text = Content::text_in(&message["content"]);
                let emitted = self.extras.insert(
                    id.to_owned(),
                    message["additional_kwargs"]
                        .as_object()
                        .cloned()
                        .unwrap_or_default(),
                );
                let extras =
                    new_extras(&emitted.unwrap_or_default(), &message["additional_kwargs"]);
                match self.texts.insert(id.to_owned(), text.clone()) {
                    None => message_event(id, message),
                    Some(emitted) => {
                        let rest = new_suffix(&emitted, &text).unwrap_or_default();
                        message_event(id, &json!({ "content": rest, "additional_kwargs": extras }))
                    }
                }
            }
            "tool" => self
                .emitted_results
                .insert(id.to_owned())
                .then(|| result_event(id, message)),
            _ => None,
        }
    }

    /// Emits the parts of the state that were not emitted yet, and then the state.
    fn values(&mut self, state: &Value) -> Vec<StreamEvent> {
        let messages = state["messages"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let interrupts = state["__interrupt__"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        self.questions = interrupts
            .iter()
            .map(|question| json!({ "id": question["id"], "value": question["value"] }))
            .collect();
        let mut events = Vec::new();
        if self.initial_messages.is_none() {
            self.initial_messages = Some(
                messages
                    .iter()
                    .filter_map(|message| message["id"].as_str().map(str::to_owned))
                    .collect(),
            );
        }
        for message in messages {
            events.extend(self.message(message));
            events.extend(self.calls_of(message));
        }
        let data = json!({ "title": state["title"], "messages": messages, "artifacts": state["artifacts"].as_array().cloned().unwrap_or_default() });
        events.push(StreamEvent {
            kind: EventKind::Values,
            data,
        });
        events
    }

    fn is_new(&self, id: &str) -> bool {
        !self
            .initial_messages
            .as_ref()
            .is_some_and(|initial| initial.contains(id))
    }

    fn calls_of(&mut self, message: &Value) -> Option<StreamEvent> {
        let (id, calls) = (message["id"].as_str()?, message["tool_calls"].as_array()?);
        if calls.is_empty() || !self.is_new(id) || !self.emitted_calls.insert(id.to_owned()) {
            return None;
        }
        let calls: Vec<Value> = calls
            .iter()
            .map(|call| json!({ "name": call["name"], "args": call["args"], "id": call["id"] }))
            .collect();
        Some(message_tuple(
            json!({ "type": "ai", "content": "", "id": id, "tool_calls": calls }),
        ))
    }

    /// Stores the usage of a message; its last count is the total.
    fn count(&mut self, id: &str, message: &Value) {
        if let Ok(usage) = serde_json::from_value(message["usage_metadata"].clone()) {
            self.usage.insert(id.to_owned(), usage);
        }
    }
}

/// Returns the event for a message or a fragment; `None` if it is empty.
fn message_event(id: &str, message: &Value) -> Option<StreamEvent> {
    let content = Content::text_in(&message["content"]);
    let mut piece = Map::from_iter([
        ("type".to_owned(), "ai".into()),
        ("content".to_owned(), content.into()),
        ("id".to_owned(), id.into()),
    ]);
    for extra in ["usage_metadata", "additional_kwargs"] {
        let value = &message[extra];
        if value.as_object().is_some_and(|map| !map.is_empty()) {
            piece.insert(extra.to_owned(), value.clone());
        }
    }
    let has_content = piece.len() > 3 || piece["content"] != "";
    has_content.then(|| message_tuple(Value::Object(piece)))
}

/// Returns the part of a text after the emitted part; `None` if nothing is new or the texts differ.
fn new_suffix<'a>(emitted: &str, text: &'a str) -> Option<&'a str> {
    let rest = text
        .strip_prefix(emitted)
        .or_else(|| text.strip_prefix(emitted.trim_end()))?;
    (!rest.is_empty()).then_some(rest)
}

/// Merges `additional_kwargs` of a fragment: appends strings and replaces other values.
fn merge_extras(emitted: &mut Map<String, Value>, more: &Value) {
    for (key, value) in more.as_object().into_iter().flatten() {
        match (emitted.get_mut(key), value) {
            (Some(Value::String(text)), Value::String(more)) => text.push_str(more),
            _ => _ = emitted.insert(key.clone(), value.clone()),
        }
    }
}

/// Returns the part of `additional_kwargs` that was not emitted yet.
fn new_extras(emitted: &Map<String, Value>, extras: &Value) -> Map<String, Value> {
    let new = |(key, value): (&String, &Value)| match (emitted.get(key), value) {
        (Some(emitted), value) if emitted == value => None,
        (Some(Value::String(emitted)), Value::String(text)) => {
            new_suffix(emitted, text).map(|rest| (key.clone(), rest.into()))
        }
        _ => Some((key.clone(), value.clone())),
    };
    extras
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(new)
        .collect()
}

fn result_event(id: &str, message: &Value) -> StreamEvent {
    let mut result = json!({
        "type": "tool", "content": Content::text_in(&message["content"]), "name": message["name"],
        "tool_call_id": message["tool_call_id"], "id": id, "status": message["status"],
    });
    if !message["artifact"].is_null() {
        result["artifact"] = message["artifact"].clone();
    }
    message_tuple(result)
}

fn message_tuple(data: Value) -> StreamEvent {
    StreamEvent {
        kind: EventKind::MessagesTuple,
        data,
    }
}

#[cfg(test)]
#[path = "event_adapter_tests.rs"]
mod tests;
