//! From a run's frames to a client's events: nothing twice, and tokens counted once per message.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::event::{EventKind, StreamEvent};
use crate::messages::{Content, UsageMetadata};
use crate::runtime::runs::RunStatus;

/// What a client was told of a run so far.
#[derive(Debug, Default)]
pub(super) struct Telling {
    /// The messages that the run began with, when that is known: they are not told.
    before: Option<HashSet<String>>,
    /// Of each answer that is told, its text so far.
    texts: HashMap<String, String>,
    /// Of each answer that is told, its `additional_kwargs` so far.
    extras: HashMap<String, Map<String, Value>>,
    /// Results that are told, and messages whose calls are.
    told: HashSet<String>,
    calls_told: HashSet<String>,
    /// What each message of the run cost.
    usage: BTreeMap<String, UsageMetadata>,
    /// What the newest state says is asked: `[{id, value}]`.
    questions: Vec<Value>,
}

impl Telling {
    /// The events of a frame.
    pub(super) fn frame(&mut self, name: &str, data: Value) -> Vec<StreamEvent> {
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

    /// The last event.
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

    /// `[message or fragment, metadata]`.
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
                // Most tokens have none.
                if message["additional_kwargs"]
                    .as_object()
                    .is_some_and(|extras| !extras.is_empty())
                {
                    grow(
                        self.extras.entry(id.clone()).or_default(),
                        &message["additional_kwargs"],
                    );
                }
                piece_of(&id, &message)
            }
            _ => self.message(&message),
        }
    }

    /// A whole message, or what of it is not told yet: guards add to answers that were streamed.
    fn message(&mut self, message: &Value) -> Option<StreamEvent> {
        let id = message["id"].as_str().filter(|id| self.is_new(id))?;
        match message["type"].as_str()? {
            "ai" => {
                self.count(id, message);
                let text = Content::text_in(&message["content"]);
                let told = self.extras.insert(
                    id.to_owned(),
                    message["additional_kwargs"]
                        .as_object()
                        .cloned()
                        .unwrap_or_default(),
                );
                let extras = new_extras(&told.unwrap_or_default(), &message["additional_kwargs"]);
                match self.texts.insert(id.to_owned(), text.clone()) {
                    None => piece_of(id, message),
                    Some(told) => {
                        let rest = rest_of(&told, &text).unwrap_or_default();
                        piece_of(id, &json!({ "content": rest, "additional_kwargs": extras }))
                    }
                }
            }
            "tool" => self
                .told
                .insert(id.to_owned())
                .then(|| result_of(id, message)),
            _ => None,
        }
    }

    /// The state, after what it has that is not told yet.
    fn values(&mut self, state: &Value) -> Vec<StreamEvent> {
        let messages = state["messages"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let asked = state["__interrupt__"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        self.questions = asked
            .iter()
            .map(|question| json!({ "id": question["id"], "value": question["value"] }))
            .collect();
        let mut events = Vec::new();
        if self.before.is_none() {
            self.before = Some(
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
            .before
            .as_ref()
            .is_some_and(|before| before.contains(id))
    }

    fn calls_of(&mut self, message: &Value) -> Option<StreamEvent> {
        let (id, calls) = (message["id"].as_str()?, message["tool_calls"].as_array()?);
        if calls.is_empty() || !self.is_new(id) || !self.calls_told.insert(id.to_owned()) {
            return None;
        }
        let calls: Vec<Value> = calls
            .iter()
            .map(|call| json!({ "name": call["name"], "args": call["args"], "id": call["id"] }))
            .collect();
        Some(tuple(
            json!({ "type": "ai", "content": "", "id": id, "tool_calls": calls }),
        ))
    }

    /// The last count of a message is the whole one.
    fn count(&mut self, id: &str, message: &Value) {
        if let Ok(usage) = serde_json::from_value(message["usage_metadata"].clone()) {
            self.usage.insert(id.to_owned(), usage);
        }
    }
}

/// What a message or a fragment of one adds, if it is anything to tell.
fn piece_of(id: &str, message: &Value) -> Option<StreamEvent> {
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
    let says_something = piece.len() > 3 || piece["content"] != "";
    says_something.then(|| tuple(Value::Object(piece)))
}

/// What a text has beyond what was told of it; nothing where it says something else.
fn rest_of<'a>(told: &str, text: &'a str) -> Option<&'a str> {
    let rest = text
        .strip_prefix(told)
        .or_else(|| text.strip_prefix(told.trim_end()))?;
    (!rest.is_empty()).then_some(rest)
}

/// Adds a fragment's `additional_kwargs` to those before it: texts go on, anything else is new.
fn grow(told: &mut Map<String, Value>, more: &Value) {
    for (key, value) in more.as_object().into_iter().flatten() {
        match (told.get_mut(key), value) {
            (Some(Value::String(text)), Value::String(more)) => text.push_str(more),
            _ => _ = told.insert(key.clone(), value.clone()),
        }
    }
}

/// What a message's `additional_kwargs` have beyond what was told of them.
fn new_extras(told: &Map<String, Value>, extras: &Value) -> Map<String, Value> {
    let new = |(key, value): (&String, &Value)| match (told.get(key), value) {
        (Some(told), value) if told == value => None,
        (Some(Value::String(told)), Value::String(text)) => {
            rest_of(told, text).map(|rest| (key.clone(), rest.into()))
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

fn result_of(id: &str, message: &Value) -> StreamEvent {
    let mut result = json!({
        "type": "tool", "content": Content::text_in(&message["content"]), "name": message["name"],
        "tool_call_id": message["tool_call_id"], "id": id, "status": message["status"],
    });
    if !message["artifact"].is_null() {
        result["artifact"] = message["artifact"].clone();
    }
    tuple(result)
}

fn tuple(data: Value) -> StreamEvent {
    StreamEvent {
        kind: EventKind::MessagesTuple,
        data,
    }
}

#[cfg(test)]
#[path = "telling_tests.rs"]
mod tests;
