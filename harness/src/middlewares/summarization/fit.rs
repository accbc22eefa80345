//! Fits a request into the model's window as a last resort, for example if no model could write a
//! summary.
//!
//! The oldest messages are dropped first, answers together with their results, but never the
//! summary and the last user message. If that is not enough, the largest texts are shortened in the
//! middle.

use serde_json::Value;

use super::bounded_text::bounded_by;
use super::view::is_summary;
use crate::messages::{Content, Message, MessageKind};
use crate::middlewares::memory::NAME as MEMORY;
use crate::middlewares::real_user::is_real_user_message;
use crate::models::TokenFamily;

/// Minimum length of a shortened text, in characters.
const MIN_CHARS: usize = 200;
/// Fixed size of a message in addition to its text, in characters.
const ENVELOPE_CHARS: usize = 20;

/// Returns the messages, reduced to at most `room` tokens as far as possible.
pub(super) fn fit(mut messages: Vec<Message>, room: u64, family: TokenFamily) -> Vec<Message> {
    let mut size = family.tokens_of(&messages);
    if size <= room {
        return messages;
    }
    let newest_user = messages.iter().rposition(is_real_user_message);
    let last_group = start_of_last_group(&messages);
    let mut kept = Vec::with_capacity(messages.len());
    let mut dropping = true;
    for (at, message) in messages.drain(..).enumerate() {
        let is_required = is_summary(&message)
            || message.without_frame().name.as_deref() == Some(MEMORY)
            || Some(at) == newest_user
            || at >= last_group;
        // A result is dropped together with its call.
        dropping &= size > room || message.tool_call_id().is_some();
        if dropping && !is_required {
            size = size.saturating_sub(family.tokens_of([&message]));
        } else {
            kept.push(message);
        }
    }
    shorten_largest(kept, size, room, family)
}

/// Returns the index of the last answer that is followed only by its results, or of the last
/// message.
fn start_of_last_group(messages: &[Message]) -> usize {
    let results = messages
        .iter()
        .rev()
        .take_while(|message| message.tool_call_id().is_some())
        .count();
    messages.len().saturating_sub(results + 1)
}

fn shorten_largest(
    mut messages: Vec<Message>,
    mut size: u64,
    room: u64,
    family: TokenFamily,
) -> Vec<Message> {
    let mut is_minimal = vec![false; messages.len()];
    while size > room {
        let tokens = |message: &Message| family.tokens_of([message]);
        let longer = messages
            .iter()
            .map(tokens)
            .enumerate()
            .filter(|(at, _)| !is_minimal[*at]);
        let Some((at, before)) = longer.max_by_key(|(_, tokens)| *tokens) else {
            break;
        };
        // A text is shortened to the required size, but by half at most: the cut is spread over
        // several texts.
        let target = before.saturating_sub(size - room).max(before / 2);
        let max_chars = family.narrow_chars(target).saturating_sub(ENVELOPE_CHARS);
        let shorter = shortened(
            &messages[at],
            max_chars.max(MIN_CHARS),
            family.narrow_chars_per_wide(),
        );
        let after = tokens(&shorter);
        if after >= before {
            is_minimal[at] = true;
            continue;
        }
        size -= before - after;
        messages[at] = shorter;
    }
    messages
}

/// Shortens the texts of a message to about `max_chars` characters, where a non-ASCII character
/// counts as `wide` characters.
fn shortened(message: &Message, max_chars: usize, wide: usize) -> Message {
    message.with(|body| {
        body.content = match std::mem::take(&mut body.content) {
            Content::Text(text) => Content::Text(bounded_by(text, max_chars, wide)),
            Content::Blocks(blocks) => {
                Content::Text(bounded_by(Content::Blocks(blocks).text(), max_chars, wide))
            }
        };
        if let MessageKind::Ai { tool_calls, .. } = &mut body.kind {
            let share = max_chars / tool_calls.len().max(1);
            tool_calls
                .iter_mut()
                .flat_map(|call| call.args.values_mut())
                .for_each(|value| shorten_value(value, share, wide));
        }
    })
}

fn shorten_value(value: &mut Value, max_chars: usize, wide: usize) {
    match value {
        Value::String(text) => *text = bounded_by(std::mem::take(text), max_chars, wide),
        Value::Array(_) | Value::Object(_) => {
            let text = value.to_string();
            if text.len() > max_chars {
                *value = Value::String(bounded_by(text, max_chars, wide));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
#[path = "fit_tests.rs"]
mod tests;
