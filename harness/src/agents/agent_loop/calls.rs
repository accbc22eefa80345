//! Which calls of the last answer still have no result.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::messages::{InvalidToolCall, Message, MessageKind, ToolCall};
use crate::tools::approval::Approval;

/// A call that is to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct DueCall {
    /// The call; without arguments when they were unreadable.
    pub call: Arc<ToolCall>,
    /// Why the call cannot be made, when its arguments were unreadable.
    pub unreadable: Option<String>,
    /// Answers to the questions it asked before, in order.
    pub answers: Vec<Value>,
    /// The decision of a person who was asked whether it may be made.
    pub approval: Option<Approval>,
}

impl DueCall {
    /// The call's id.
    pub fn id(&self) -> &str {
        &self.call.id
    }

    /// Whether a person put it in place of the model's call.
    pub(super) fn is_edited(&self) -> bool {
        matches!(self.approval, Some(Approval::Edit { .. }))
    }

    /// The call with what a person said to it; an edit takes its place.
    pub(super) fn with_answers(self, answers: Vec<Value>, approval: Option<Approval>) -> Self {
        let edited = approval
            .as_ref()
            .and_then(|approval| approval.edited(&self.call));
        Self {
            call: edited.map_or(self.call, Arc::new),
            answers,
            approval,
            ..self
        }
    }
}

impl From<&ToolCall> for DueCall {
    fn from(call: &ToolCall) -> Self {
        Self {
            call: Arc::new(call.clone()),
            unreadable: None,
            answers: Vec::new(),
            approval: None,
        }
    }
}

/// The last answer of a model, and the results its calls have.
#[derive(Debug)]
pub(super) struct LastAnswer<'a> {
    message: &'a Message,
    answered: HashSet<&'a str>,
}

impl<'a> LastAnswer<'a> {
    pub(super) fn has_calls(&self) -> bool {
        self.ids().next().is_some()
    }

    pub(super) fn has_calls_without_result(&self) -> bool {
        self.open_ids().next().is_some()
    }

    /// The ids of its calls that have no result.
    pub(super) fn open_ids(&self) -> impl Iterator<Item = &'a str> {
        self.ids().filter(|id| !self.answered.contains(id))
    }

    /// Readable calls, then unreadable ones, which are answered too, so that the model can mend them. What has one id is one call:
    /// its result, its task and what is written down of it go by the id.
    fn ids(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let unreadable: &[InvalidToolCall] = match &self.message.kind {
            MessageKind::Ai {
                invalid_tool_calls, ..
            } => invalid_tool_calls,
            _ => &[],
        };
        let readable = self
            .message
            .tool_calls()
            .iter()
            .map(|call| call.id.as_str());
        let mut seen = HashSet::new();
        readable
            .chain(unreadable.iter().filter_map(answerable))
            .filter(move |id| seen.insert(*id))
    }
}

/// The last AI message with its calls, if there is one.
pub(super) fn last_answer(messages: &[Message]) -> Option<LastAnswer<'_>> {
    let at = messages.iter().rposition(Message::is_ai)?;
    Some(LastAnswer {
        message: &messages[at],
        answered: messages[at + 1..]
            .iter()
            .filter_map(Message::tool_call_id)
            .collect(),
    })
}

/// The calls of the last AI message that no tool message behind it answers.
pub(super) fn calls_without_result(messages: &[Message]) -> Vec<DueCall> {
    let Some(last) = last_answer(messages) else {
        return Vec::new();
    };
    let mut open: HashSet<&str> = last.open_ids().collect();
    calls_of(last.message)
        .into_iter()
        .filter(|call| open.remove(call.id()))
        .collect()
}

/// The calls that a command sends to the tools: one call, a list of calls, or messages of which the last answer has them.
pub(super) fn calls_in(input: &Value) -> Vec<DueCall> {
    let call = |value: &Value| {
        serde_json::from_value::<ToolCall>(value.get("tool_call").unwrap_or(value).clone()).ok()
    };
    match (input, input.get("messages")) {
        (_, Some(Value::Array(messages))) => {
            let messages: Vec<Message> = messages
                .iter()
                .filter_map(|message| Message::coerce(message.clone()).ok())
                .collect();
            calls_without_result(&messages)
        }
        (Value::Array(calls), _) => {
            let mut seen = HashSet::new();
            let calls = calls
                .iter()
                .filter_map(call)
                .filter(|call| seen.insert(call.id.clone()));
            calls.map(|call| DueCall::from(&call)).collect()
        }
        (one, _) => call(one).iter().map(DueCall::from).collect(),
    }
}

/// Readable calls, then unreadable ones, which are answered too, so that the model can mend them.
fn calls_of(message: &Message) -> Vec<DueCall> {
    let MessageKind::Ai {
        tool_calls,
        invalid_tool_calls,
        ..
    } = &message.kind
    else {
        return Vec::new();
    };
    tool_calls
        .iter()
        .map(DueCall::from)
        .chain(invalid_tool_calls.iter().filter_map(unreadable))
        .collect()
}

/// A call without an id cannot be answered, so it is none.
fn answerable(call: &InvalidToolCall) -> Option<&str> {
    call.id.as_deref().filter(|id| !id.is_empty())
}

fn unreadable(call: &InvalidToolCall) -> Option<DueCall> {
    let id = answerable(call)?;
    let reason = call
        .error
        .clone()
        .unwrap_or_else(|| "the arguments are not a JSON object".to_owned());
    let name = call
        .name
        .clone()
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "unknown_tool".to_owned());
    Some(DueCall {
        call: Arc::new(ToolCall::new(id, name, Map::new())),
        unreadable: Some(reason),
        answers: Vec::new(),
        approval: None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn two_calls_with_one_id_are_one() {
        let call = |name: &str| json!({"id": "a", "name": name, "args": {}});
        let answer = json!({"type": "ai", "content": "", "tool_calls": [call("f"), call("g")]});
        let messages = [Message::coerce(answer.clone()).unwrap()];
        let names = |calls: Vec<DueCall>| {
            calls
                .into_iter()
                .map(|due| due.call.name.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            last_answer(&messages)
                .unwrap()
                .open_ids()
                .collect::<Vec<_>>(),
            ["a"]
        );
        assert_eq!(names(calls_without_result(&messages)), ["f"]);
        assert_eq!(names(calls_in(&json!([call("f"), call("g")]))), ["f"]);
        assert_eq!(names(calls_in(&json!({"messages": [answer]}))), ["f"]);
    }
}
