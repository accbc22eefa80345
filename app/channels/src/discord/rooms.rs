//! Channels to which answers go: the channel itself, or the thread of the answered message.

use std::collections::HashMap;

use parking_lot::Mutex;

use super::answers::ApiError;
use super::ids::{id, is_id};
use super::rest::Rest;
use crate::platform::{PlatformError, Target};

/// Maximum number of remembered threads.
const MAX_ROOMS: usize = 10_000;

/// Channel of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Room {
    /// Channel or thread.
    pub(super) channel: String,
    /// Message that the first text refers to.
    pub(super) reply_to: Option<String>,
}

/// Channels of messages that are answered in threads.
#[derive(Debug, Default)]
pub(super) struct Rooms(Mutex<HashMap<String, Room>>);

impl Rooms {
    /// Returns the channel of an answer. A thread is created if the answered message asks for it;
    /// if that is refused, the answer goes to the channel of the message.
    pub(super) async fn find(&self, rest: &Rest, target: &Target) -> Result<Room, PlatformError> {
        let context = &target.context;
        let (Some(name), Some(parent), Some(message)) = (
            context["thread"].as_str(),
            id(&context["channel"]),
            id(&context["message"]),
        ) else {
            return plain(target);
        };
        if let Some(room) = self.0.lock().get(message) {
            return Ok(room.clone());
        }
        let room = match rest.start_thread(parent, message, name).await {
            Ok(()) => Room {
                channel: message.to_owned(),
                reply_to: None,
            },
            Err(ApiError::Code { code, .. }) => {
                tracing::warn!(channel = parent, code, "discord refused to start a thread");
                Room {
                    channel: parent.to_owned(),
                    reply_to: Some(message.to_owned()),
                }
            }
            Err(ApiError::Failed(error)) => return Err(error),
        };
        let mut rooms = self.0.lock();
        if rooms.len() >= MAX_ROOMS {
            rooms.clear();
        }
        rooms.insert(message.to_owned(), room.clone());
        Ok(room)
    }
}

fn plain(target: &Target) -> Result<Room, PlatformError> {
    if !is_id(&target.chat.id) {
        return Err(PlatformError::Refused(
            "the chat has no valid Discord channel id".to_owned(),
        ));
    }
    // The message that a thread began with lies in the parent channel.
    let reply_to = target
        .reply_to
        .clone()
        .filter(|message| !target.is_direct() && is_id(message) && *message != target.chat.id);
    Ok(Room {
        channel: target.chat.id.clone(),
        reply_to,
    })
}
