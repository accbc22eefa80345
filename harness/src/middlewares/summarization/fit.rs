//! The last resort of a request that is too large, such as when no model would write a summary: it is made to fit.
//!
//! The oldest messages go first, whole answers with their results, but not the summary and not what the user asked last. If that is
//! not enough, the largest texts lose their middle.

use serde_json::Value;

use super::view::is_summary;
use crate::messages::{Content, Message, MessageKind};
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
        let stays = is_summary(&message) || Some(at) == newest_user || at >= last_group;
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
    let results = messages.iter().rev().take_while(|message| message.tool_call_id().is_some()).count();
    messages.len().saturating_sub(results + 1)
}

fn shorten_largest(mut messages: Vec<Message>, mut size: u64, room: u64, family: TokenFamily) -> Vec<Message> {
    while size > room {
        let tokens = |message: &Message| family.tokens_of([message]);
        let Some((at, before)) = messages.iter().map(tokens).enumerate().max_by_key(|(_, tokens)| *tokens) else { break };
        // Down to what is wanted, but no text for all of them.
        let wanted = before.saturating_sub(size - room).max(before / 2);
        let letters = family.letters(wanted).saturating_sub(ENVELOPE_LETTERS);
        let shorter = shortened(&messages[at], letters.max(LEAST_LETTERS));
        let after = tokens(&shorter);
        if after >= before {
            break;
        }
        size -= before - after;
        messages[at] = shorter;
    }
    messages
}

/// The message with about so many letters.
fn shortened(message: &Message, letters: usize) -> Message {
    message.with(|body| {
        body.content = match std::mem::take(&mut body.content) {
            Content::Text(text) => Content::Text(bounded(text, letters)),
            Content::Blocks(blocks) => Content::Text(bounded(Content::Blocks(blocks).text(), letters)),
        };
        if let MessageKind::Ai { tool_calls, .. } = &mut body.kind {
            let share = letters / tool_calls.len().max(1);
            tool_calls.iter_mut().flat_map(|call| call.args.values_mut()).for_each(|value| shorten_value(value, share));
        }
    })
}

fn shorten_value(value: &mut Value, letters: usize) {
    match value {
        Value::String(text) => *text = bounded(std::mem::take(text), letters),
        Value::Array(_) | Value::Object(_) => {
            let text = value.to_string();
            if text.len() > letters {
                *value = Value::String(bounded(text, letters));
            }
        }
        _ => {}
    }
}

/// A text of at most so many letters: two thirds of them from its beginning, the rest from its end. Wide letters count twice, for
/// they weigh more.
pub(crate) fn bounded(text: String, letters: usize) -> String {
    let weight = |letter: char| if letter.is_ascii() { 1 } else { 2 };
    if text.chars().map(weight).sum::<usize>() <= letters {
        return text;
    }
    let room = letters.saturating_sub(MARKER.len());
    let take = |most: usize, letters: &mut dyn Iterator<Item = char>| {
        let mut left = most;
        letters.take_while(|letter| left.checked_sub(weight(*letter)).map(|rest| left = rest).is_some()).collect::<Vec<char>>()
    };
    let head = take(room * 2 / 3, &mut text.chars());
    let tail = take(room - room * 2 / 3, &mut text.chars().rev());
    head.into_iter().chain(MARKER.chars()).chain(tail.into_iter().rev()).collect()
}

#[cfg(test)]
#[path = "fit_tests.rs"]
mod tests;
