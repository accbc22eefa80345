//! Events of stored rows.

use deerflow_domain::channels::InboxMessage;

use crate::platform::{Event, EventBody};

/// Reads the event of a row. If its chat got a new id meanwhile, the event has that id, and no ids
/// of messages: they are those of the former chat.
pub(crate) fn stored_event(row: &InboxMessage) -> Result<Event, serde_json::Error> {
    let mut event: Event = serde_json::from_value(row.event.clone())?;
    if event.chat.id != row.key.chat {
        event.chat.id.clone_from(&row.key.chat);
        event.id.clear();
        match &mut event.body {
            EventBody::Message(message) => message.reply_to = None,
            EventBody::Press(press) => press.message = None,
            EventBody::Stop { .. } | EventBody::Renamed { .. } => {}
        }
    }
    Ok(event)
}
