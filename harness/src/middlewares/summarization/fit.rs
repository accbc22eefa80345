//! The last resort of a request that is too large, such as when no model would write a summary: it is made to fit.
//!
//! The oldest messages go first, whole answers with their results, but not the summary and not what the user asked last. If that is
//! not enough, the largest texts lose their middle.

use serde_json::Value;

use super::view::is_summary;
use crate::messages::{Content, Message, MessageKind};
use crate::middlewares::memory::NAME as MEMORY;
use crate::middlewares::real_user::is_real_user_message;
use crate::models::TokenFamily;

/// The least that is left of a text, in letters.
const LEAST_LETTERS: usize = 200;
/// Letters that a message has besides its text.
const ENVELOPE_LETTERS: usize = 20;
/// What stands where the middle was.
const MARKER: &str = "\n[...]\n";

/// The same messages, or as much of them as is at most `room` tokens.
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
        let stays = is_summary(&message)
            || message.name.as_deref() == Some(MEMORY)
            || Some(at) == newest_user
            || at >= last_group;
        // A result goes with its call.
        dropping &= size > room || message.tool_call_id().is_some();
        if dropping && !stays {
            size = size.saturating_sub(family.tokens_of([&message]));
        } else {
            kept.push(message);
        }
    }
    shorten_largest(kept, size, room, family)
}

/// The last answer with its results, or the last message.
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
    let mut at_their_least = vec![false; messages.len()];
    while size > room {
        let tokens = |message: &Message| family.tokens_of([message]);
        let longer = messages
            .iter()
            .map(tokens)
            .enumerate()
            .filter(|(at, _)| !at_their_least[*at]);
        let Some((at, before)) = longer.max_by_key(|(_, tokens)| *tokens) else {
            break;
        };
        // Down to what is wanted, but no text for all of them.
        let wanted = before.saturating_sub(size - room).max(before / 2);
        let letters = family.letters(wanted).saturating_sub(ENVELOPE_LETTERS);
        let shorter = shortened(
            &messages[at],
            letters.max(LEAST_LETTERS),
            family.wide_letters(),
        );
        let after = tokens(&shorter);
        if after >= before {
            at_their_least[at] = true;
            continue;
        }
        size -= before - after;
        messages[at] = shorter;
    }
    messages
}

/// The message with about so many letters, of which a wide one counts `wide`.
fn shortened(message: &Message, letters: usize, wide: usize) -> Message {
    message.with(|body| {
        body.content = match std::mem::take(&mut body.content) {
            Content::Text(text) => Content::Text(bounded_by(text, letters, wide)),
            Content::Blocks(blocks) => {
                Content::Text(bounded_by(Content::Blocks(blocks).text(), letters, wide))
            }
        };
        if let MessageKind::Ai { tool_calls, .. } = &mut body.kind {
            let share = letters / tool_calls.len().max(1);
            tool_calls
                .iter_mut()
                .flat_map(|call| call.args.values_mut())
                .for_each(|value| shorten_value(value, share, wide));
        }
    })
}

fn shorten_value(value: &mut Value, letters: usize, wide: usize) {
    match value {
        Value::String(text) => *text = bounded_by(std::mem::take(text), letters, wide),
        Value::Array(_) | Value::Object(_) => {
            let text = value.to_string();
            if text.len() > letters {
                *value = Value::String(bounded_by(text, letters, wide));
            }
        }
        _ => {}
    }
}

/// A text of at most so many letters: two thirds of them from its beginning, the rest from its end. Wide letters count twice, for
/// they weigh more.
pub(crate) fn bounded(text: String, letters: usize) -> String {
    bounded_by(text, letters, 2)
}

/// The same where wide letters count `wide`.
fn bounded_by(text: String, letters: usize, wide: usize) -> String {
    let weight = |letter: char| if letter.is_ascii() { 1 } else { wide };
    if text.chars().map(weight).sum::<usize>() <= letters {
        return text;
    }
    let room = letters.saturating_sub(MARKER.len());
    let take = |most: usize, letters: &mut dyn Iterator<Item = char>| {
        let mut left = most;
        letters
            .take_while(|letter| {
                left.checked_sub(weight(*letter))
                    .map(|rest| left = rest)
                    .is_some()
            })
            .collect::<Vec<char>>()
    };
    let head = take(room * 2 / 3, &mut text.chars());
    let tail = take(room - room * 2 / 3, &mut text.chars().rev());
    head.into_iter()
        .chain(MARKER.chars())
        .chain(tail.into_iter().rev())
        .collect()
}

#[cfg(test)]
#[path = "fit_tests.rs"]
mod tests;
