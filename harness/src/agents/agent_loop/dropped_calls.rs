//! Reports the calls that a middleware removes from an answer. The journal contains the final
//! answer, so removed calls need an event of their own.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::messages::{Message, MessageKind};
use crate::middlewares::Phase;
use crate::runtime::agent::{AgentEvent, MiddlewareAction, RunContext};

/// Tag of these events in the journal.
const TAG: &str = "dropped_calls";

/// Emits an event with the calls that the hook of this middleware removed: `before` and `written`
/// contain the same answer, and only the one in `before` has the call.
pub(super) fn report_dropped_calls(
    before: &[Message],
    written: &[Message],
    middleware: &str,
    phase: Phase,
    ctx: &RunContext,
) {
    let rewritten = written.iter().filter(|message| message.is_ai());
    let pairs = rewritten.filter_map(|rewritten| {
        Some((
            before
                .iter()
                .rfind(|original| original.id.is_some() && original.id == rewritten.id)?,
            rewritten,
        ))
    });
    let dropped: Vec<Value> = pairs
        .flat_map(|(original, rewritten)| dropped(original, rewritten))
        .collect();
    if dropped.is_empty() {
        return;
    }
    tracing::info!(middleware, run_id = %ctx.run_id, calls = dropped.len(), "middleware removed tool calls from an answer");
    ctx.sink
        .emit(AgentEvent::MiddlewareAction(Box::new(MiddlewareAction {
            tag: TAG,
            name: middleware.to_owned(),
            hook: phase.as_str(),
            action: "drop_tool_calls",
            changes: json!({ "tool_calls": dropped }),
        })));
}

/// Returns the readable and unreadable calls of `original` that `rewritten` does not contain.
fn dropped(original: &Message, rewritten: &Message) -> Vec<Value> {
    let MessageKind::Ai {
        tool_calls,
        invalid_tool_calls,
        ..
    } = &original.kind
    else {
        return Vec::new();
    };
    let remaining: HashSet<&str> = rewritten.call_ids().collect();
    let readable = tool_calls
        .iter()
        .filter(|call| !remaining.contains(call.id.as_str()))
        .map(|call| json!(call));
    let unreadable = invalid_tool_calls
        .iter()
        .filter(|call| call.id.as_deref().is_none_or(|id| !remaining.contains(id)))
        .map(|call| json!(call));
    readable.chain(unreadable).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_returns_calls_missing_in_the_rewritten_answer() {
        let answer = |calls: Value, unreadable: Value| {
            let answer = json!({"type": "ai", "id": "a", "content": "", "tool_calls": calls, "invalid_tool_calls": unreadable});
            Message::coerce(answer).unwrap()
        };
        let call = |id: &str| json!({"id": id, "name": "f", "args": {"at": id}});
        let original = answer(
            json!([call("a"), call("b")]),
            json!([{"id": "c", "name": "g", "args": "{"}]),
        );
        let names = |rewritten: &Message| {
            dropped(&original, rewritten)
                .iter()
                .map(|call| call["id"].clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&answer(json!([call("b")]), json!([]))), ["a", "c"]);
        assert_eq!(names(&original).len(), 0);
        assert_eq!(
            dropped(&original, &answer(json!([]), json!([])))[0]["args"],
            json!({"at": "a"})
        );
    }
}
