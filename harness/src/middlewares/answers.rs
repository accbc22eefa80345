//! Helpers for guards: edits of a model's answer, and hidden reminders for the next model call.

use serde_json::{Value, json};

use crate::messages::{Content, Message, MessageBody, MessageKind, ToolCall, kwargs};

use super::real_user::is_real_user_message;
use super::token_usage::with_updated_attribution;

/// Messages since the last user request: those of the current run, and of earlier runs that it
/// continues.
pub(super) fn of_run(messages: &[Message]) -> &[Message] {
    let from = messages.iter().rposition(begins_run).map_or(0, |at| at + 1);
    &messages[from..]
}

/// Reports whether a run began with this message: a user message, or a hidden message that started
/// a run.
pub(super) fn begins_run(message: &Message) -> bool {
    is_real_user_message(message)
        || (message.is_human()
            && message
                .without_frame()
                .additional_kwargs
                .contains_key(kwargs::RUN_ID))
}

/// Returns the last answer of the model.
pub(super) fn last_answer(messages: &[Message]) -> Option<&Message> {
    messages.iter().rfind(|message| message.is_ai())
}

/// Returns the answer with only the calls for which `is_retained` returns `true`. The calls in the
/// provider's raw form are reduced in the same way.
pub(super) fn with_calls_where(
    answer: &Message,
    mut is_retained: impl FnMut(&ToolCall) -> bool,
) -> Message {
    let retained = answer.with(|body| {
        let MessageKind::Ai {
            tool_calls,
            invalid_tool_calls,
            ..
        } = &mut body.kind
        else {
            return;
        };
        tool_calls.retain(&mut is_retained);
        if tool_calls.is_empty() {
            invalid_tool_calls.clear();
        }
        let retained: Vec<String> = tool_calls.iter().map(|call| call.id.clone()).collect();
        remove_raw_calls(body, &retained);
    });
    with_updated_attribution(retained)
}

/// Returns the answer without calls and with `notice` appended. Without calls the run ends;
/// `reason` is stored on the answer.
pub(super) fn stop_answer(answer: &Message, reason: &str, notice: &str) -> Message {
    let message = with_calls_where(answer, |_| false).with(|body| {
        append(&mut body.content, notice);
        body.additional_kwargs
            .insert(kwargs::GUARD_STOP.to_owned(), json!(reason));
    });
    with_updated_attribution(message)
}

/// Reports whether the answer ends the model's turn: it has no calls in any form and does not come
/// from the framework.
pub(super) fn is_final(answer: &Message) -> bool {
    let MessageKind::Ai {
        tool_calls,
        invalid_tool_calls,
        ..
    } = &answer.kind
    else {
        return false;
    };
    let raw = ["tool_calls", "function_call"]
        .iter()
        .any(|key| answer.additional_kwargs.contains_key(*key));
    let meant_to_call = answer
        .response_metadata
        .get("finish_reason")
        .is_some_and(|reason| reason == "tool_calls" || reason == "function_call");
    let from_framework = answer.flag(kwargs::ERROR_FALLBACK)
        || answer.flag(kwargs::INCOMPLETE)
        || answer.additional_kwargs.contains_key(kwargs::GUARD_STOP);
    tool_calls.is_empty()
        && invalid_tool_calls.is_empty()
        && !raw
        && !meant_to_call
        && !from_framework
}

/// Appends a paragraph.
pub(super) fn append(content: &mut Content, paragraph: &str) {
    match content {
        Content::Text(text) if text.trim().is_empty() => paragraph.clone_into(text),
        Content::Text(text) => {
            text.truncate(text.trim_end().len());
            text.push_str("\n\n");
            text.push_str(paragraph);
        }
        Content::Blocks(blocks) => blocks.push(json!({ "type": "text", "text": paragraph })),
    }
}

/// Creates a hidden message that is appended to a single request. Its `name` identifies it in
/// transcripts.
pub(super) fn reminder(name: &str, text: &str) -> Message {
    Message::human(format!("<system-reminder>\n{text}\n</system-reminder>")).with(|body| {
        body.name = Some(name.to_owned());
        body.additional_kwargs
            .insert(kwargs::HIDE_FROM_UI.to_owned(), Value::Bool(true));
    })
}

fn remove_raw_calls(body: &mut MessageBody, retained: &[String]) {
    if let Some(Value::Array(raw)) = body.additional_kwargs.get_mut("tool_calls") {
        raw.retain(|call| {
            call.get("id")
                .and_then(Value::as_str)
                .is_some_and(|id| retained.iter().any(|retained| retained == id))
        });
    }
    if !retained.is_empty() {
        return;
    }
    body.additional_kwargs.shift_remove("tool_calls");
    body.additional_kwargs.shift_remove("function_call");
    let reason = body.response_metadata.get_mut("finish_reason");
    if let Some(reason) =
        reason.filter(|reason| *reason == "tool_calls" || *reason == "function_call")
    {
        *reason = json!("stop");
    }
}
