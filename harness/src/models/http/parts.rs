//! The order in which a model said its answer, and what only its provider understands of it: thoughts with signatures and the
//! like, which some providers want back exactly where they were.
//!
//! A message holds text, reasoning and calls. Its parts beside it name them by length and id, so that none is kept twice.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::messages::{InvalidToolCall, Message, MessageKind, ToolCall, kwargs};

/// Where a message keeps its parts, in its `additional_kwargs`.
pub(in crate::models) const PROVIDER_PARTS_KWARG: &str = "provider_parts";

/// Who said an answer. What one model signs or encrypts, another model or another server refuses.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::models) struct Maker {
    provider: &'static str,
    server: String,
    model: String,
}

impl Maker {
    /// The `model` of `provider` at `server`.
    pub(in crate::models) fn new(
        provider: &'static str,
        server: impl Into<String>,
        model: impl Into<String>,
    ) -> Self {
        Self {
            provider,
            server: server.into(),
            model: model.into(),
        }
    }

    /// Its name, as it is asked for.
    pub(in crate::models) fn model(&self) -> &str {
        &self.model
    }

    /// The word in `model_provider`.
    pub(in crate::models) fn provider(&self) -> &'static str {
        self.provider
    }

    fn facts(&self) -> [(&'static str, &str); 3] {
        [
            ("provider", self.provider),
            ("server", &self.server),
            ("model", &self.model),
        ]
    }
}

/// A part of an answer. `extras` are the provider's own fields beside it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part {
    /// So many bytes of the message's text.
    Text {
        bytes: usize,
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        extras: Map<String, Value>,
    },
    /// So many bytes of the message's reasoning.
    Thought {
        bytes: usize,
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        extras: Map<String, Value>,
    },
    /// The call with this id.
    Call {
        id: String,
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        extras: Map<String, Value>,
    },
    /// What only the provider understands.
    Own { value: Value },
}

/// Collects the parts of an answer while it comes.
#[derive(Debug, Default)]
pub(in crate::models) struct Parts(Vec<Part>);

impl Parts {
    /// Text was said.
    pub(in crate::models) fn text(&mut self, piece: &str) {
        match self.0.last_mut() {
            Some(Part::Text { bytes, extras }) if extras.is_empty() => *bytes += piece.len(),
            _ if piece.is_empty() => {}
            _ => self.0.push(Part::Text {
                bytes: piece.len(),
                extras: Map::new(),
            }),
        }
    }

    /// Text was said that has fields of its own, and may be empty.
    pub(in crate::models) fn text_with(&mut self, piece: &str, extras: Map<String, Value>) {
        if extras.is_empty() {
            return self.text(piece);
        }
        self.0.push(Part::Text {
            bytes: piece.len(),
            extras,
        });
    }

    /// A thought has ended that was so long, and is wanted back.
    pub(in crate::models) fn thought(&mut self, bytes: usize, extras: Map<String, Value>) {
        self.0.push(Part::Thought { bytes, extras });
    }

    /// A call was made.
    pub(in crate::models) fn call(&mut self, id: &str, extras: Map<String, Value>) {
        self.0.push(Part::Call {
            id: id.to_owned(),
            extras,
        });
    }

    /// Something of the provider's own was said.
    pub(in crate::models) fn own(&mut self, value: Value) {
        self.0.push(Part::Own { value });
    }

    /// What the message keeps under [`PROVIDER_PARTS_KWARG`]: nothing where text and calls are all there is.
    pub(in crate::models) fn into_kwarg(self, maker: &Maker) -> Option<Value> {
        let plain = |part: &Part| match part {
            Part::Text { extras, .. } | Part::Call { extras, .. } => extras.is_empty(),
            Part::Thought { .. } | Part::Own { .. } => false,
        };
        (!self.0.iter().all(plain)).then(|| {
            let facts = maker
                .facts()
                .into_iter()
                .map(|(key, fact)| (key.to_owned(), json!(fact)));
            facts.chain([("parts".to_owned(), json!(self.0))]).collect()
        })
    }
}

/// A part of an earlier answer, as it shall be said again.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::models) enum Said<'a> {
    /// Text.
    Text(&'a str, Map<String, Value>),
    /// A thought.
    Thought(&'a str, Map<String, Value>),
    /// A call.
    Call(&'a ToolCall, Map<String, Value>),
    /// A call whose arguments nobody could read.
    Invalid(&'a InvalidToolCall),
    /// What only its provider understands: an object.
    Own(Value),
}

/// The parts of an earlier answer in their order. `text` is the message's text. What others than `maker` said of their
/// own is left out; calls and text that a middleware took out or put in are where one expects them.
pub(in crate::models) fn said<'a>(
    message: &'a Message,
    text: &'a str,
    maker: Option<&Maker>,
) -> Vec<Said<'a>> {
    let MessageKind::Ai {
        tool_calls,
        invalid_tool_calls,
        ..
    } = &message.kind
    else {
        return vec![];
    };
    let kept = message.additional_kwargs.get(PROVIDER_PARTS_KWARG);
    let parts = maker
        .zip(kept)
        .and_then(|(maker, kept)| parts_of(kept, maker))
        .unwrap_or_default();
    let reasoning = message
        .additional_kwargs
        .get(kwargs::REASONING_CONTENT)
        .and_then(Value::as_str)
        .unwrap_or_default();
    let length = |of: fn(&Part) -> usize| parts.iter().map(of).fold(0, usize::saturating_add);
    let unchanged = length(|part| {
        if let Part::Text { bytes, .. } = part {
            *bytes
        } else {
            0
        }
    }) == text.len();
    // A signature holds for the whole thought alone.
    let kept_thoughts = length(|part| {
        if let Part::Thought { bytes, .. } = part {
            *bytes
        } else {
            0
        }
    }) == reasoning.len();
    let (mut rest, mut thoughts, mut open) = (text, reasoning, vec![true; tool_calls.len()]);
    let mut said = Vec::with_capacity(parts.len() + tool_calls.len() + 1);
    for part in parts {
        match part {
            Part::Own { value } => said.extend(value.is_object().then_some(Said::Own(value))),
            Part::Thought { bytes, extras } => {
                if kept_thoughts && let Some((here, after)) = thoughts.split_at_checked(bytes) {
                    thoughts = after;
                    said.push(Said::Thought(here, extras));
                }
            }
            Part::Text { bytes, extras } => {
                match rest.split_at_checked(bytes).filter(|_| unchanged) {
                    Some((here, after)) => {
                        rest = after;
                        said.push(Said::Text(here, extras));
                    }
                    None => flush(&mut rest, &mut said),
                }
            }
            Part::Call { id, extras } => {
                if !unchanged {
                    flush(&mut rest, &mut said);
                }
                if let Some(at) = tool_calls.iter().position(|call| call.id == id) {
                    open[at] = false;
                    said.push(Said::Call(&tool_calls[at], extras));
                }
            }
        }
    }
    flush(&mut rest, &mut said);
    said.extend(
        tool_calls
            .iter()
            .zip(open)
            .filter(|(_, open)| *open)
            .map(|(call, _)| Said::Call(call, Map::new())),
    );
    said.extend(invalid_tool_calls.iter().map(Said::Invalid));
    said
}

fn flush<'a>(rest: &mut &'a str, said: &mut Vec<Said<'a>>) {
    if !rest.is_empty() {
        said.push(Said::Text(std::mem::take(rest), Map::new()));
    }
}

fn parts_of(kept: &Value, maker: &Maker) -> Option<Vec<Part>> {
    let same = maker
        .facts()
        .into_iter()
        .all(|(key, fact)| kept.get(key).is_some_and(|kept| kept == fact));
    if same {
        serde_json::from_value(kept.get("parts")?.clone()).ok()
    } else {
        None
    }
}

#[cfg(test)]
#[path = "parts_tests.rs"]
mod tests;
