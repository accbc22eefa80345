//! Tool calls of the last answer that have no result yet.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::messages::{InvalidToolCall, Message, MessageKind, ToolCall};
use crate::tools::approval::Approval;

/// Tool call that is to be executed.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingCall {
    /// The call; its arguments are empty if they were unreadable.
    pub call: Arc<ToolCall>,
    /// Parse error of unreadable arguments.
    pub unreadable: Option<String>,
    /// Answers to earlier interrupts of this call, in order.
    pub answers: Vec<Value>,
    /// The user's decision about this call, if approval was requested.
    pub approval: Option<Approval>,
}

impl PendingCall {
    /// Returns the id of the call.
    pub fn id(&self) -> &str {
        &self.call.id
    }

    /// `true` if the user edited the call.
    pub(super) fn is_edited(&self) -> bool {
        matches!(self.approval, Some(Approval::Edit { .. }))
    }

    /// Adds the user's answers and decision; an edit replaces the call.
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

impl From<&ToolCall> for PendingCall {
    fn from(call: &ToolCall) -> Self {
        Self {
            call: Arc::new(call.clone()),
            unreadable: None,
            answers: Vec::new(),
            approval: None,
        }
    }
}

/// Last answer of the model, with the results of its calls.
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

    /// Ids of the calls that have no result.
    pub(super) fn open_ids(&self) -> impl Iterator<Item = &'a str> {
        self.ids().filter(|id| !self.answered.contains(id))
    }

    /// Ids of readable calls, then of unreadable ones: those get a result as well, so that the
    /// model can correct them. Calls with the same id are one call, because result, task and call
    /// log are keyed by the id.
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

/// Returns the last AI message, if any, with the ids of the results after it.
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

/// Returns the calls of the last AI message that have no tool message after it.
pub(super) fn calls_without_result(messages: &[Message]) -> Vec<PendingCall> {
    let Some(last) = last_answer(messages) else {
        return Vec::new();
    };
    let mut open: HashSet<&str> = last.open_ids().collect();
    calls_of(last.message)
        .into_iter()
        .filter(|call| open.remove(call.id()))
        .collect()
}

/// Parses the calls that a command sends to the tools: one call, a list of calls, or messages whose
/// last answer contains calls.
pub(super) fn calls_in(input: &Value) -> Vec<PendingCall> {
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
            calls.map(|call| PendingCall::from(&call)).collect()
        }
        (one, _) => call(one).iter().map(PendingCall::from).collect(),
    }
}

/// Readable calls, then unreadable ones: those get a result as well, so that the model can correct
/// them.
fn calls_of(message: &Message) -> Vec<PendingCall> {
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
        .map(PendingCall::from)
        .chain(invalid_tool_calls.iter().filter_map(unreadable))
        .collect()
}

/// Returns the id of an unreadable call. A call without an id cannot get a result and is ignored.
fn answerable(call: &InvalidToolCall) -> Option<&str> {
    call.id.as_deref().filter(|id| !id.is_empty())
}

fn unreadable(call: &InvalidToolCall) -> Option<PendingCall> {
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
    Some(PendingCall {
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
    fn calls_with_the_same_id_are_one() {
        let call = |name: &str| json!({"id": "a", "name": name, "args": {}});
        let answer = json!({"type": "ai", "content": "", "tool_calls": [call("f"), call("g")]});
        let messages = [Message::coerce(answer.clone()).unwrap()];
        let names = |calls: Vec<PendingCall>| {
            calls
                .into_iter()
                .map(|pending| pending.call.name.clone())
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
