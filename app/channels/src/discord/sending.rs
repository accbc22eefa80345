//! Sending of messages and of answers in progress.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use uuid::Uuid;

use super::answers::{ApiError, NOT_EDITABLE, UNKNOWN_CHANNEL, UNKNOWN_MESSAGE};
use super::bodies::{self, NewMessage};
use super::calls::Created;
use super::ids::id;
use super::rest::{Payload, Rest};
use super::rooms::{Room, Rooms};
use crate::markup::{self, Dialect};
use crate::platform::{
    Button, Content, Delivery, FileBody, LiveReply, OutgoingMessage, PlatformError, Sent, TextLimit,
};

/// Maximum size of a sent file in bytes.
pub(super) const MAX_FILE: u64 = 10 * 1024 * 1024;
/// Time within which Discord recognizes a repeated nonce, with reserve.
const NONCE_TIME: chrono::TimeDelta = chrono::TimeDelta::minutes(2);
/// Number of messages that are searched for an earlier attempt.
const SEARCHED: u8 = 50;

/// Message of an answer in progress, as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Live<'a> {
    /// Message that may have been created under this key.
    Prepared(Uuid),
    /// Message.
    Shown { channel: &'a str, message: &'a str },
}

impl<'a> Live<'a> {
    fn read(state: &'a Value) -> Option<Self> {
        if let (Some(channel), Some(message)) = (id(&state["channel"]), id(&state["message"])) {
            return Some(Self::Shown { channel, message });
        }
        let key = Uuid::parse_str(state["key"].as_str()?).ok()?;
        Some(Self::Prepared(key))
    }
}

/// Returns the state of a live message that is created under a key.
pub(super) fn prepare_live(key: Uuid) -> Value {
    json!({"key": live_key(key).to_string()})
}

/// Sender of messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sender<'a> {
    /// REST API.
    pub(super) rest: &'a Rest,
    /// Channels of answers.
    pub(super) rooms: &'a Rooms,
    /// Time of the attempt.
    pub(super) now: DateTime<Utc>,
}

impl Sender<'_> {
    /// Sends a message, or completes the live message that it names.
    pub(super) async fn send(
        self,
        message: &OutgoingMessage,
        file: Option<FileBody>,
        delivery: &mut Delivery,
    ) -> Result<Sent, PlatformError> {
        let (text, buttons): (&str, &[Button]) = match &message.content {
            Content::Text(part) => (&part.markup, &[]),
            Content::Buttons { text, buttons } => (&text.markup, buttons),
            Content::File { .. } => return self.send_file(message, file, delivery).await,
            Content::TextFile { name, text } => {
                let file = FileBody {
                    name: name.clone(),
                    media_type: "text/plain; charset=utf-8".to_owned(),
                    bytes: Bytes::copy_from_slice(text.as_bytes()),
                };
                return self.send_file(message, Some(file), delivery).await;
            }
        };
        let mut key = delivery.id;
        match Live::read(&message.live) {
            Some(Live::Shown { channel, message }) => {
                let body = bodies::edit(text, buttons);
                match self.rest.edit(channel, message, body).await {
                    Ok(()) => return Ok(sent(message)),
                    Err(error) if is_expired(&error) => {
                        tracing::debug!(message, "the live message is gone");
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            Some(Live::Prepared(prepared)) => key = prepared,
            None => {}
        }
        let room = self.rooms.find(self.rest, &message.target).await?;
        if let Some(found) = self.earlier(&room, text, delivery).await? {
            return Ok(sent(&found));
        }
        let created = self.create(&room, text, buttons, key).await?;
        if key != delivery.id && !created.shows(text, buttons.len()) {
            // The key found the live message, whose creation was not recorded.
            let body = bodies::edit(text, buttons);
            match self.rest.edit(&room.channel, &created.id, body).await {
                Err(error) if is_expired(&error) => {
                    let created = self.create(&room, text, buttons, delivery.id).await?;
                    return Ok(sent(&created.id));
                }
                edited => edited?,
            }
        }
        Ok(sent(&created.id))
    }

    async fn create(
        self,
        room: &Room,
        text: &str,
        buttons: &[Button],
        key: Uuid,
    ) -> Result<Created, ApiError> {
        let body = Payload::Json(bodies::create(NewMessage {
            text,
            buttons,
            key,
            reply_to: room.reply_to.as_deref(),
        }));
        self.rest.create(&room.channel, body).await
    }

    async fn send_file(
        self,
        message: &OutgoingMessage,
        file: Option<FileBody>,
        delivery: &mut Delivery,
    ) -> Result<Sent, PlatformError> {
        let file = file.ok_or_else(|| PlatformError::Refused("the file is missing".to_owned()))?;
        if file.bytes.len() as u64 > MAX_FILE {
            return Err(PlatformError::Refused(
                "the file is larger than 10 MiB, the limit of Discord".to_owned(),
            ));
        }
        let room = self.rooms.find(self.rest, &message.target).await?;
        let body = bodies::create(NewMessage {
            text: "",
            buttons: &[],
            key: delivery.id,
            reply_to: room.reply_to.as_deref(),
        });
        let created = self
            .rest
            .create(&room.channel, Payload::File(body, file))
            .await?;
        Ok(sent(&created.id))
    }

    /// Finds the message of an earlier attempt that is too old for its nonce.
    async fn earlier(
        self,
        room: &Room,
        text: &str,
        delivery: &mut Delivery,
    ) -> Result<Option<String>, PlatformError> {
        let began = delivery.progress["began"]
            .as_i64()
            .and_then(DateTime::from_timestamp_millis);
        let Some(began) = began else {
            delivery.progress = json!({"began": self.now.timestamp_millis()});
            return Ok(None);
        };
        if delivery.attempt < 2 || self.now - began < NONCE_TIME {
            return Ok(None);
        }
        let bot = self.rest.me().await?;
        let messages = self.rest.messages(&room.channel, None, SEARCHED).await?;
        Ok(messages
            .iter()
            .find(|message| {
                message["author"]["id"] == bot["id"]
                    && message["content"].as_str().map(str::trim) == Some(text.trim())
                    && is_after(&message["timestamp"], began)
            })
            .and_then(|message| id(&message["id"]))
            .map(ToOwned::to_owned))
    }

    /// Shows the text so far in the live message, which is created if there is none.
    pub(super) async fn update_live(
        self,
        reply: &mut LiveReply,
        markdown: &str,
        limit: TextLimit,
    ) -> Result<(), PlatformError> {
        let text = preview(markdown, limit);
        if text.trim().is_empty() {
            return Ok(());
        }
        let buttons: Vec<Button> = reply.stop.iter().cloned().collect();
        let key = match Live::read(&reply.state) {
            Some(Live::Shown { channel, message }) => {
                let body = bodies::edit(&text, &buttons);
                return match self.rest.edit(channel, message, body).await {
                    Ok(()) => Ok(()),
                    Err(error) if is_expired(&error) => Err(PlatformError::LiveExpired(
                        "the message was removed".to_owned(),
                    )),
                    Err(error) => Err(error.into()),
                };
            }
            Some(Live::Prepared(key)) => key,
            None => live_key(reply.key),
        };
        let room = self.rooms.find(self.rest, &reply.target).await?;
        let created = self.create(&room, &text, &buttons, key).await?;
        reply.state = json!({"channel": room.channel, "message": created.id});
        Ok(())
    }
}

/// Returns a key that differs from that of a message with the same id.
fn live_key(key: Uuid) -> Uuid {
    Uuid::from_u128(key.as_u128().rotate_left(1) ^ 1)
}

fn sent(message: &str) -> Sent {
    Sent {
        ids: vec![message.to_owned()],
    }
}

/// `true` if a live message cannot be edited any more.
fn is_expired(error: &ApiError) -> bool {
    error.code().is_some_and(|code| {
        matches!(code, UNKNOWN_MESSAGE | UNKNOWN_CHANNEL) || NOT_EDITABLE.contains(&code)
    })
}

/// `true` if a message was written after a time, within the tolerance of clocks.
fn is_after(timestamp: &Value, began: DateTime<Utc>) -> bool {
    timestamp
        .as_str()
        .and_then(|text| DateTime::parse_from_rfc3339(text).ok())
        .is_some_and(|at| at.with_timezone(&Utc) >= began - chrono::TimeDelta::minutes(1))
}

/// Returns the first part of a text in progress.
fn preview(markdown: &str, limit: TextLimit) -> String {
    let parts = markup::parts(markdown, Dialect::Discord, limit);
    let text = parts
        .into_iter()
        .next()
        .map_or_else(|| markdown.to_owned(), |part| part.markup);
    cut(text, limit)
}

/// Cuts a text to a limit.
fn cut(mut text: String, limit: TextLimit) -> String {
    if limit.unit.length(&text) <= limit.max {
        return text;
    }
    let mut length = 0;
    let end = text.char_indices().find(|(at, character)| {
        length += limit.unit.length(&text[*at..at + character.len_utf8()]);
        length > limit.max
    });
    if let Some((end, _)) = end {
        text.truncate(end);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::LengthUnit;

    #[test]
    fn cut_counts_utf16_units() {
        let limit = TextLimit {
            unit: LengthUnit::Utf16,
            max: 5,
        };
        assert_eq!(cut("😀😀😀".to_owned(), limit), "😀😀");
        assert_eq!(cut("abcde".to_owned(), limit), "abcde");
        assert_eq!(cut("abcdef".to_owned(), limit), "abcde");
    }

    #[test]
    fn live_key_differs_from_the_key() {
        for key in [0, 1, u128::MAX, 7 << 90] {
            let key = Uuid::from_u128(key);
            assert_ne!(live_key(key), key);
        }
    }
}
