//! Calls that a middleware takes out of an answer. The journal has the answer as it stays, so it is told of them apart.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::messages::{Message, MessageKind};
use crate::middlewares::Phase;
use crate::runtime::agent::{AgentEvent, MiddlewareAction, RunContext};

/// What their rows in the journal are found by.
const TAG: &str = "dropped_calls";

/// Tells of the calls in `before` that the hook of this middleware leaves out of the same answers in `written`.
pub(super) fn tell_dropped_calls(
    before: &[Message],
    written: &[Message],
    middleware: &str,
    phase: Phase,
    ctx: &RunContext,
) {
    let kept = written.iter().filter(|message| message.is_ai());
    let pairs = kept.filter_map(|kept| {
        Some((
            before
                .iter()
                .rfind(|held| held.id.is_some() && held.id == kept.id)?,
            kept,
        ))
    });
    let dropped: Vec<Value> = pairs.flat_map(|(held, kept)| dropped(held, kept)).collect();
    if dropped.is_empty() {
        return;
    }
    tracing::info!(middleware, run_id = %ctx.run_id, calls = dropped.len(), "calls were taken out of an answer");
    ctx.sink
        .emit(AgentEvent::MiddlewareAction(Box::new(MiddlewareAction {
            tag: TAG,
            name: middleware.to_owned(),
            hook: phase.as_str(),
            action: "drop_tool_calls",
            changes: json!({ "tool_calls": dropped }),
        })));
}

/// The calls of an answer that are not in what is left of it, readable ones and others.
fn dropped(held: &Message, kept: &Message) -> Vec<Value> {
    let MessageKind::Ai {
        tool_calls,
        invalid_tool_calls,
        ..
    } = &held.kind
    else {
        return Vec::new();
    };
    let left: HashSet<&str> = kept.call_ids().collect();
    let readable = tool_calls
        .iter()
        .filter(|call| !left.contains(call.id.as_str()))
        .map(|call| json!(call));
    let unreadable = invalid_tool_calls
        .iter()
        .filter(|call| call.id.as_deref().is_none_or(|id| !left.contains(id)))
        .map(|call| json!(call));
    readable.chain(unreadable).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_left_of_an_answer_was_dropped() {
        let answer = |calls: Value, unreadable: Value| {
            let answer = json!({"type": "ai", "id": "a", "content": "", "tool_calls": calls, "invalid_tool_calls": unreadable});
            Message::coerce(answer).unwrap()
        };
        let call = |id: &str| json!({"id": id, "name": "f", "args": {"at": id}});
        let held = answer(
            json!([call("a"), call("b")]),
            json!([{"id": "c", "name": "g", "args": "{"}]),
        );
        let names = |kept: &Message| {
            dropped(&held, kept)
                .iter()
                .map(|call| call["id"].clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&answer(json!([call("b")]), json!([]))), ["a", "c"]);
        assert_eq!(names(&held).len(), 0);
        assert_eq!(
            dropped(&held, &answer(json!([]), json!([])))[0]["args"],
            json!({"at": "a"})
        );
    }
}
