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
    pub(in crate::models) fn new(provider: &'static str, server: impl Into<String>, model: impl Into<String>) -> Self {
        Self { provider, server: server.into(), model: model.into() }
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
        [("provider", self.provider), ("server", &self.server), ("model", &self.model)]
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
            _ => self.0.push(Part::Text { bytes: piece.len(), extras: Map::new() }),
        }
    }

    /// Text was said that has fields of its own, and may be empty.
    pub(in crate::models) fn text_with(&mut self, piece: &str, extras: Map<String, Value>) {
        if extras.is_empty() {
            return self.text(piece);
        }
        self.0.push(Part::Text { bytes: piece.len(), extras });
    }

    /// A thought has ended that was so long, and is wanted back.
    pub(in crate::models) fn thought(&mut self, bytes: usize, extras: Map<String, Value>) {
        self.0.push(Part::Thought { bytes, extras });
    }

    /// A call was made.
    pub(in crate::models) fn call(&mut self, id: &str, extras: Map<String, Value>) {
        self.0.push(Part::Call { id: id.to_owned(), extras });
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
            let facts = maker.facts().into_iter().map(|(key, fact)| (key.to_owned(), json!(fact)));
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
pub(in crate::models) fn said<'a>(message: &'a Message, text: &'a str, maker: Option<&Maker>) -> Vec<Said<'a>> {
    let MessageKind::Ai { tool_calls, invalid_tool_calls, .. } = &message.kind else { return vec![] };
    let kept = message.additional_kwargs.get(PROVIDER_PARTS_KWARG);
    let parts = maker.zip(kept).and_then(|(maker, kept)| parts_of(kept, maker)).unwrap_or_default();
    let reasoning = message.additional_kwargs.get(kwargs::REASONING_CONTENT).and_then(Value::as_str).unwrap_or_default();
    let length = |of: fn(&Part) -> usize| parts.iter().map(of).fold(0, usize::saturating_add);
    let unchanged = length(|part| if let Part::Text { bytes, .. } = part { *bytes } else { 0 }) == text.len();
    // A signature holds for the whole thought alone.
    let kept_thoughts = length(|part| if let Part::Thought { bytes, .. } = part { *bytes } else { 0 }) == reasoning.len();
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
            Part::Text { bytes, extras } => match rest.split_at_checked(bytes).filter(|_| unchanged) {
                Some((here, after)) => {
                    rest = after;
                    said.push(Said::Text(here, extras));
                }
                None => flush(&mut rest, &mut said),
            },
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
    said.extend(tool_calls.iter().zip(open).filter(|(_, open)| *open).map(|(call, _)| Said::Call(call, Map::new())));
    said.extend(invalid_tool_calls.iter().map(Said::Invalid));
    said
}

fn flush<'a>(rest: &mut &'a str, said: &mut Vec<Said<'a>>) {
    if !rest.is_empty() {
        said.push(Said::Text(std::mem::take(rest), Map::new()));
    }
}

fn parts_of(kept: &Value, maker: &Maker) -> Option<Vec<Part>> {
    let same = maker.facts().into_iter().all(|(key, fact)| kept.get(key).is_some_and(|kept| kept == fact));
    if same { serde_json::from_value(kept.get("parts")?.clone()).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::MessageBody;

    fn maker(provider: &'static str) -> Maker {
        Maker::new(provider, "h.test", "m")
    }

    fn answer(text: &str, calls: &[&str], parts: Parts) -> Message {
        let tool_calls = calls.iter().map(|id| ToolCall::new(*id, "f", Map::new())).collect();
        let kind = MessageKind::Ai { tool_calls, invalid_tool_calls: vec![], usage_metadata: None };
        let mut body = MessageBody::new(kind, text);
        body.additional_kwargs.extend(parts.into_kwarg(&maker("p")).map(|kept| (PROVIDER_PARTS_KWARG.to_owned(), kept)));
        body.into()
    }

    fn shown(message: &Message, provider: &'static str) -> Vec<String> {
        shown_to(message, &maker(provider))
    }

    fn shown_to(message: &Message, maker: &Maker) -> Vec<String> {
        let text = message.content.text();
        let show = |said| match said {
            Said::Text(text, extras) => format!("text {text}{}", if extras.is_empty() { "" } else { "+" }),
            Said::Call(call, _) => format!("call {}", call.id),
            Said::Invalid(_) => "invalid".to_owned(),
            Said::Thought(text, _) => format!("thought {text}"),
            Said::Own(value) => format!("own {}", value["n"]),
        };
        said(message, &text, Some(maker)).into_iter().map(show).collect()
    }

    fn parts() -> Parts {
        let mut parts = Parts::default();
        parts.own(json!({"n": 1}));
        parts.text("ü");
        parts.text("b");
        parts.own(json!({"n": 2}));
        parts.call("x", Map::new());
        parts.text_with("", Map::from_iter([("signature".to_owned(), json!("s"))]));
        parts.text("c");
        parts
    }

    #[test]
    fn an_answer_is_said_again_in_its_order() {
        let message = answer("übc", &["y", "x"], parts());
        assert_eq!(shown(&message, "p"), ["own 1", "text üb", "own 2", "call x", "text +", "text c", "call y"]);
        assert_eq!(shown(&message, "other"), ["text übc", "call y", "call x"]);
    }

    #[test]
    fn what_is_signed_goes_to_the_model_and_the_server_that_signed_it() {
        let message = answer("", &[], parts());
        for (server, model, own) in [("h.test", "m", 2), ("h.test", "m2", 0), ("other.test", "m", 0)] {
            let shown = shown_to(&message, &Maker::new("p", server, model));
            assert_eq!(shown.iter().filter(|said| said.starts_with("own")).count(), own, "{server} {model}");
        }
        assert!(said(&message, "", None).is_empty());
    }

    #[test]
    fn forged_parts_harm_nobody() {
        let endless = json!([{"type": "text", "bytes": usize::MAX}, {"type": "text", "bytes": usize::MAX}, {"type": "own", "value": 7}]);
        let kept = json!({"provider": "p", "server": "h.test", "model": "m", "parts": endless});
        let forged = Message::ai("so").with(|body| drop(body.additional_kwargs.insert(PROVIDER_PARTS_KWARG.to_owned(), kept)));
        assert_eq!(shown(&forged, "p"), ["text so"]);
    }

    #[test]
    fn what_was_changed_since_is_said_as_it_is_now() {
        assert_eq!(shown(&answer("other text", &[], parts()), "p"), ["own 1", "text other text", "own 2"]);
        assert_eq!(shown(&answer("", &["x"], parts()), "p"), ["own 1", "own 2", "call x"]);
    }

    #[test]
    fn thoughts_are_said_whole_or_not_at_all() {
        let mut parts = Parts::default();
        parts.thought(2, Map::new());
        parts.text("a");
        parts.thought(1, Map::new());
        let message = answer("a", &[], parts);
        let thinking = |text: &str| {
            let text = json!(text);
            shown(&message.with(|body| drop(body.additional_kwargs.insert(kwargs::REASONING_CONTENT.to_owned(), text))), "p")
        };
        assert_eq!(thinking("üb"), ["thought ü", "text a", "thought b"]);
        assert_eq!(thinking("changed"), ["text a"]);
        assert_eq!(shown(&message, "p"), ["text a"]);
    }

    #[test]
    fn plain_answers_keep_no_parts() {
        let mut plain = Parts::default();
        plain.text("a");
        plain.call("x", Map::new());
        assert_eq!(plain.into_kwarg(&maker("p")), None);
    }
}
