//! Grouping of received messages that are one message: albums, and files followed by text.

use chrono::{DateTime, TimeDelta, Utc};
use deerflow_domain::channels::InboxMessage;

use crate::platform::{ChatMessage, Event, EventBody};

/// Time within which messages are one.
const GATHER: TimeDelta = TimeDelta::milliseconds(750);
/// Maximum number of messages in a group.
pub(super) const MAX_GROUP: usize = 20;

/// Decoded row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReceivedMessage {
    /// Row.
    pub(crate) row: InboxMessage,
    /// Its event.
    pub(crate) event: Event,
}

/// First group of waiting messages.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Group {
    /// The group is complete: the first `n` messages.
    Complete(usize),
    /// Further messages may belong to the group until this time.
    Until(DateTime<Utc>),
}

/// Determines the first group. `waiting` is not empty and in order.
pub(super) fn first_group(waiting: &[ReceivedMessage], now: DateTime<Utc>) -> Group {
    let mut size = 1;
    while size < waiting.len().min(MAX_GROUP) && continues(&waiting[size - 1], &waiting[size]) {
        size += 1;
    }
    let last = &waiting[size - 1];
    let is_closed = size < waiting.len() || size == MAX_GROUP;
    let until = last.row.received_at + GATHER;
    // A clock that was set back must not delay a message for long.
    if is_closed || !may_continue(last) || now >= until || until - now > GATHER {
        Group::Complete(size)
    } else {
        Group::Until(until)
    }
}

fn message(received: &ReceivedMessage) -> Option<&ChatMessage> {
    match &received.event.body {
        EventBody::Message(message) => Some(message),
        _ => None,
    }
}

/// Reports whether another message could belong to the group of this one.
fn may_continue(received: &ReceivedMessage) -> bool {
    message(received).is_some_and(|message| message.album.is_some() || is_files_only(message))
}

fn continues(earlier: &ReceivedMessage, later: &ReceivedMessage) -> bool {
    let (Some(one), Some(other)) = (message(earlier), message(later)) else {
        return false;
    };
    // A group that was handled before stays as it was.
    let is_repeated = (earlier.row.claims > 0) != (later.row.claims > 0);
    if is_repeated || earlier.event.sender.id != later.event.sender.id {
        return false;
    }
    if one.album.is_some() && one.album == other.album {
        return true;
    }
    let is_soon = later.row.received_at - earlier.row.received_at <= GATHER;
    is_soon && is_files_only(one) && !other.text.starts_with('/')
}

fn is_files_only(message: &ChatMessage) -> bool {
    !message.files.is_empty() && message.text.is_empty()
}

#[cfg(test)]
#[path = "gather_tests.rs"]
mod tests;
