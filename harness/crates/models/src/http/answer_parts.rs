//! Order of the parts of an answer, and the parts that only its provider understands, such as
//! signed thoughts. Some providers require them back at exactly the same position.
//!
//! A message stores text, reasoning and calls. Its parts are stored next to them and refer to them
//! by length and id, so that no text is stored twice.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use deerflow_core::messages::{InvalidToolCall, Message, MessageKind, ToolCall, kwargs};

/// Key of a message's parts in its `additional_kwargs`.
pub(crate) const PROVIDER_PARTS_KWARG: &str = "provider_parts";

/// Origin of an answer. Content that one model signs or encrypts is rejected by another model or
/// server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ModelOrigin {
    provider: &'static str,
    server: String,
    model: String,
}

impl ModelOrigin {
    /// Creates the origin for `model` of `provider` at `server`.
    pub(crate) fn new(
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

    /// Returns the model's name in requests.
    pub(crate) fn model(&self) -> &str {
        &self.model
    }

    /// Returns the value of `model_provider`.
    pub(crate) fn provider(&self) -> &'static str {
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

/// Part of an answer. `extras` are additional fields of the provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum AnswerPart {
    /// Text of this length.
    Text {
        bytes: usize,
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        extras: Map<String, Value>,
    },
    /// Reasoning of this length.
    Thought {
        bytes: usize,
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        extras: Map<String, Value>,
    },
    /// Tool call with this id.
    Call {
        id: String,
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        extras: Map<String, Value>,
    },
    /// Value that only the provider understands.
    #[serde(rename = "own")]
    ProviderSpecific { value: Value },
}

/// Collects the parts of an answer while it is streamed.
#[derive(Debug, Default)]
pub(crate) struct AnswerParts(Vec<AnswerPart>);

impl AnswerParts {
    /// Adds text.
    pub(crate) fn text(&mut self, piece: &str) {
        match self.0.last_mut() {
            Some(AnswerPart::Text { bytes, extras }) if extras.is_empty() => *bytes += piece.len(),
            _ if piece.is_empty() => {}
            _ => self.0.push(AnswerPart::Text {
                bytes: piece.len(),
                extras: Map::new(),
            }),
        }
    }

    /// Adds text with additional fields. The text may be empty.
    pub(crate) fn text_with(&mut self, piece: &str, extras: Map<String, Value>) {
        if extras.is_empty() {
            return self.text(piece);
        }
        self.0.push(AnswerPart::Text {
            bytes: piece.len(),
            extras,
        });
    }

    /// Adds a completed thought of this length that the provider requires back.
    pub(crate) fn thought(&mut self, bytes: usize, extras: Map<String, Value>) {
        self.0.push(AnswerPart::Thought { bytes, extras });
    }

    /// Adds a tool call.
    pub(crate) fn call(&mut self, id: &str, extras: Map<String, Value>) {
        self.0.push(AnswerPart::Call {
            id: id.to_owned(),
            extras,
        });
    }

    /// Adds a value that only the provider understands.
    pub(crate) fn provider_specific(&mut self, value: Value) {
        self.0.push(AnswerPart::ProviderSpecific { value });
    }

    /// Returns the value to store under [`PROVIDER_PARTS_KWARG`], or `None` if there are only plain
    /// text and calls.
    pub(crate) fn into_kwarg(self, origin: &ModelOrigin) -> Option<Value> {
        let plain = |part: &AnswerPart| match part {
            AnswerPart::Text { extras, .. } | AnswerPart::Call { extras, .. } => extras.is_empty(),
            AnswerPart::Thought { .. } | AnswerPart::ProviderSpecific { .. } => false,
        };
        (!self.0.iter().all(plain)).then(|| {
            let facts = origin
                .facts()
                .into_iter()
                .map(|(key, fact)| (key.to_owned(), json!(fact)));
            facts.chain([("parts".to_owned(), json!(self.0))]).collect()
        })
    }
}

/// Part of an earlier answer to send again.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ReplayPart<'a> {
    Text(&'a str, Map<String, Value>),
    Thought(&'a str, Map<String, Value>),
    Call(&'a ToolCall, Map<String, Value>),
    /// A call with invalid arguments.
    Invalid(&'a InvalidToolCall),
    /// A JSON object that only its provider understands.
    ProviderSpecific(Value),
}

/// Returns the parts of an earlier answer in their order. `text` is the message's text. Omits
/// thoughts and provider-specific parts of another origin. If a middleware changed the text or the
/// calls, returns the current ones: a changed text in one piece before the calls, added calls last.
pub(crate) fn replay_parts<'a>(
    message: &'a Message,
    text: &'a str,
    origin: Option<&ModelOrigin>,
) -> Vec<ReplayPart<'a>> {
    let MessageKind::Ai {
        tool_calls,
        invalid_tool_calls,
        ..
    } = &message.kind
    else {
        return vec![];
    };
    let stored = message.additional_kwargs.get(PROVIDER_PARTS_KWARG);
    let parts = origin
        .zip(stored)
        .and_then(|(origin, stored)| parts_of(stored, origin))
        .unwrap_or_default();
    let reasoning = message
        .additional_kwargs
        .get(kwargs::REASONING_CONTENT)
        .and_then(Value::as_str)
        .unwrap_or_default();
    let length = |of: fn(&AnswerPart) -> usize| parts.iter().map(of).fold(0, usize::saturating_add);
    let unchanged = length(|part| {
        if let AnswerPart::Text { bytes, .. } = part {
            *bytes
        } else {
            0
        }
    }) == text.len();
    // A signature is valid only for the complete thought.
    let thoughts_unchanged = length(|part| {
        if let AnswerPart::Thought { bytes, .. } = part {
            *bytes
        } else {
            0
        }
    }) == reasoning.len();
    let (mut rest, mut thoughts, mut open) = (text, reasoning, vec![true; tool_calls.len()]);
    let mut replayed = Vec::with_capacity(parts.len() + tool_calls.len() + 1);
    for part in parts {
        match part {
            AnswerPart::ProviderSpecific { value } => replayed.extend(
                value
                    .is_object()
                    .then_some(ReplayPart::ProviderSpecific(value)),
            ),
            AnswerPart::Thought { bytes, extras } => {
                if thoughts_unchanged && let Some((here, after)) = thoughts.split_at_checked(bytes)
                {
                    thoughts = after;
                    replayed.push(ReplayPart::Thought(here, extras));
                }
            }
            AnswerPart::Text { bytes, extras } => {
                match rest.split_at_checked(bytes).filter(|_| unchanged) {
                    Some((here, after)) => {
                        rest = after;
                        replayed.push(ReplayPart::Text(here, extras));
                    }
                    None => flush(&mut rest, &mut replayed),
                }
            }
            AnswerPart::Call { id, extras } => {
                if !unchanged {
                    flush(&mut rest, &mut replayed);
                }
                if let Some(at) = tool_calls.iter().position(|call| call.id == id) {
                    open[at] = false;
                    replayed.push(ReplayPart::Call(&tool_calls[at], extras));
                }
            }
        }
    }
    flush(&mut rest, &mut replayed);
    replayed.extend(
        tool_calls
            .iter()
            .zip(open)
            .filter(|(_, open)| *open)
            .map(|(call, _)| ReplayPart::Call(call, Map::new())),
    );
    replayed.extend(invalid_tool_calls.iter().map(ReplayPart::Invalid));
    replayed
}

fn flush<'a>(rest: &mut &'a str, replayed: &mut Vec<ReplayPart<'a>>) {
    if !rest.is_empty() {
        replayed.push(ReplayPart::Text(std::mem::take(rest), Map::new()));
    }
}

fn parts_of(stored: &Value, origin: &ModelOrigin) -> Option<Vec<AnswerPart>> {
    let same = origin
        .facts()
        .into_iter()
        .all(|(key, fact)| stored.get(key).is_some_and(|stored| stored == fact));
    if same {
        serde_json::from_value(stored.get("parts")?.clone()).ok()
    } else {
        None
    }
}

#[cfg(test)]
#[path = "answer_parts_tests.rs"]
mod tests;
