//! What guards do to an answer, and what they whisper to the model before the next one.

use serde_json::{Value, json};

use crate::messages::{Content, Message, MessageBody, MessageKind, ToolCall, kwargs};

use super::real_user::is_real_user_message;
use super::token_usage::attributed_anew;

/// The messages of the present run, and of runs that it only goes on with: those since it was last asked for something.
pub(super) fn of_run(messages: &[Message]) -> &[Message] {
    let from = messages.iter().rposition(begins_run).map_or(0, |at| at + 1);
    &messages[from..]
}

/// Whether a run began with the message: a person's, or a hidden one that a run was started with.
pub(super) fn begins_run(message: &Message) -> bool {
    is_real_user_message(message)
        || (message.is_human() && message.additional_kwargs.contains_key(kwargs::RUN_ID))
}

/// The last answer, if nothing but results came after it.
pub(super) fn last_answer(messages: &[Message]) -> Option<&Message> {
    messages.iter().rfind(|message| message.is_ai())
}

/// The same answer with only those calls that `keep` wants, also in the provider's own form.
pub(super) fn keeping(answer: &Message, mut keep: impl FnMut(&ToolCall) -> bool) -> Message {
    let kept = answer.with(|body| {
        let MessageKind::Ai {
            tool_calls,
            invalid_tool_calls,
            ..
        } = &mut body.kind
        else {
            return;
        };
        tool_calls.retain(&mut keep);
        if tool_calls.is_empty() {
            invalid_tool_calls.clear();
        }
        let kept: Vec<String> = tool_calls.iter().map(|call| call.id.clone()).collect();
        forget_raw_calls(body, &kept);
    });
    attributed_anew(kept)
}

/// The same answer without any call, and with `notice` behind its text: the run ends with it, for this reason.
pub(super) fn stopped(answer: &Message, reason: &str, notice: &str) -> Message {
    let stopped = keeping(answer, |_| false).with(|body| {
        append(&mut body.content, notice);
        body.additional_kwargs
            .insert(kwargs::GUARD_STOP.to_owned(), json!(reason));
    });
    attributed_anew(stopped)
}

/// Whether a model meant the answer to be its last word: no calls in any form, and not the framework's own text.
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
    let ours = answer.flag(kwargs::ERROR_FALLBACK)
        || answer.flag(kwargs::INCOMPLETE)
        || answer.additional_kwargs.contains_key(kwargs::GUARD_STOP);
    tool_calls.is_empty() && invalid_tool_calls.is_empty() && !raw && !meant_to_call && !ours
}

/// Adds a paragraph.
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

/// A hidden message that the model reads at the end of one request. Known by `name` to those who look through transcripts.
pub(super) fn reminder(name: &str, text: &str) -> Message {
    Message::human(format!("<system-reminder>\n{text}\n</system-reminder>")).with(|body| {
        body.name = Some(name.to_owned());
        body.additional_kwargs
            .insert(kwargs::HIDE_FROM_UI.to_owned(), Value::Bool(true));
    })
}

fn forget_raw_calls(body: &mut MessageBody, kept: &[String]) {
    if let Some(Value::Array(raw)) = body.additional_kwargs.get_mut("tool_calls") {
        raw.retain(|call| {
            call.get("id")
                .and_then(Value::as_str)
                .is_some_and(|id| kept.iter().any(|kept| kept == id))
        });
    }
    if !kept.is_empty() {
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
