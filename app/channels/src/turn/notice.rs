//! Short replies to events that no turn handles.

use std::sync::Arc;

use deerflow_domain::channels::{InboxMessage, NewOutgoing};
use uuid::Uuid;

use super::progress::RowProgress;
use super::replies::Replies;
use super::stored::stored_event;
use crate::bot::Bot;
use crate::platform::{Event, Target};
use crate::words;

/// Returns a short reply to an event that is not handled by a turn.
pub(crate) fn notice(
    bot: &Arc<Bot>,
    id: Uuid,
    event: &Event,
    conversation: &str,
    text: &str,
) -> Vec<NewOutgoing> {
    let mut replies = Replies::new(bot, id, conversation, Target::of(event));
    replies.text("notice", text);
    replies.finish()
}

/// Returns the reply to a message that is set aside; none if its event cannot be read.
pub(crate) fn set_aside_notice(bot: &Arc<Bot>, row: &InboxMessage) -> Vec<NewOutgoing> {
    match stored_event(row) {
        Ok(event) => {
            let live = RowProgress::read(&row.progress).live;
            let mut replies = Replies::new(bot, row.id, &row.conversation, Target::of(&event));
            replies.answer("notice", words::SET_ASIDE, Vec::new(), live);
            replies.finish()
        }
        Err(_) => Vec::new(),
    }
}
