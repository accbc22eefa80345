//! Messages and presses of Discord as events.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::ids::{id, time_of};
use super::places::Place;
use crate::platform::{
    Chat, ChatKind, ChatMessage, Event, EventBody, IncomingFile, Press, Sender, cut_text,
};

/// Types of messages that persons write: plain and replies.
const WRITTEN: [u64; 2] = [0, 19];
/// Type of interactions with components.
const COMPONENT: u64 = 3;
/// Maximum number of files of a message.
const MAX_FILES: usize = 10;

/// Facts that decoding depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    /// User id of the bot.
    pub(super) bot: &'a str,
    /// `true` if messages of channels are answered in threads.
    pub(super) thread_mode: bool,
    /// Channel of the event.
    pub(super) place: &'a Place,
}

/// Decodes a message. `Ok(None)` if it is not written by a person.
///
/// # Errors
/// Words for the log if it is malformed.
pub(super) fn message(data: &Value, view: View<'_>) -> Result<Option<Event>, &'static str> {
    let message = id(&data["id"]).ok_or("a message without id")?;
    let channel = id(&data["channel_id"]).ok_or("a message without channel")?;
    let author = &data["author"];
    let person = id(&author["id"]).ok_or("a message without author")?;
    let is_written = data["type"]
        .as_u64()
        .is_some_and(|kind| WRITTEN.contains(&kind));
    let is_of_program = author["bot"] == true
        || author["system"] == true
        || person == view.bot
        || data.get("webhook_id").is_some_and(|id| !id.is_null());
    if !is_written || is_of_program {
        return Ok(None);
    }
    let content = data["content"].as_str().unwrap_or_default();
    let files = files(&data["attachments"]);
    if content.is_empty() && files.is_empty() {
        return Ok(None);
    }
    let guild = id(&data["guild_id"]).or(view.place.guild.as_deref());
    let (text, cut) = cut_text(readable(content, &data["mentions"], view.bot));
    let name = display_name(author, &data["member"]);
    let is_addressed = guild.is_none()
        || mentions(&data["mentions"], view.bot)
        || data["referenced_message"]["author"]["id"] == view.bot
        || view.place.owner.as_deref() == Some(view.bot);
    let starts_thread = view.thread_mode && guild.is_some() && view.place.has_threads;
    let mut context = json!({"channel": channel, "message": message});
    if starts_thread {
        context["thread"] = json!(super::bodies::thread_name(
            name.as_deref().unwrap_or("user"),
            message
        ));
    }
    // The thread of a message has the message's id.
    let (chat, parent) = if starts_thread {
        (message, Some(channel.to_owned()))
    } else {
        (channel, view.place.parent.clone())
    };
    Ok(Some(Event {
        id: message.to_owned(),
        workspace: guild.unwrap_or_default().to_owned(),
        chat: chat_of(chat, guild, parent),
        sender: Sender {
            id: person.to_owned(),
            name,
        },
        at: timestamp(&data["timestamp"]).unwrap_or_else(|| time_of(message)),
        body: EventBody::Message(ChatMessage {
            text,
            files,
            topic: None,
            reply_to: id(&data["message_reference"]["message_id"]).map(ToOwned::to_owned),
            album: None,
            addressed: is_addressed,
            cut,
        }),
        context,
    }))
}

/// Decodes a press of a button. `Ok(None)` for other interactions.
///
/// # Errors
/// Words for the log if it is malformed.
pub(super) fn press(data: &Value, view: View<'_>) -> Result<Option<Event>, &'static str> {
    if data["type"].as_u64() != Some(COMPONENT) {
        return Ok(None);
    }
    let interaction = id(&data["id"]).ok_or("a press without id")?;
    let channel = id(&data["channel_id"]).ok_or("a press without channel")?;
    let token = data["token"].as_str().ok_or("a press without token")?;
    let pressed = data["data"]["custom_id"]
        .as_str()
        .ok_or("a press without data")?;
    let user = if data["user"].is_object() {
        &data["user"]
    } else {
        &data["member"]["user"]
    };
    let person = id(&user["id"]).ok_or("a press without person")?;
    let message = id(&data["message"]["id"]).map(ToOwned::to_owned);
    let guild = id(&data["guild_id"]).or(view.place.guild.as_deref());
    Ok(Some(Event {
        id: format!("press:{interaction}"),
        workspace: guild.unwrap_or_default().to_owned(),
        chat: chat_of(channel, guild, view.place.parent.clone()),
        sender: Sender {
            id: person.to_owned(),
            name: display_name(user, &data["member"]),
        },
        at: time_of(interaction),
        body: EventBody::Press(Press {
            data: pressed.to_owned(),
            message,
        }),
        context: json!({"channel": channel, "interaction": interaction, "token": token}),
    }))
}

/// Builds the chat of an event.
pub(super) fn chat_of(id: &str, guild: Option<&str>, parent: Option<String>) -> Chat {
    Chat {
        id: id.to_owned(),
        kind: if guild.is_some() {
            ChatKind::Group
        } else {
            ChatKind::Direct
        },
        parent,
    }
}

fn timestamp(value: &Value) -> Option<DateTime<Utc>> {
    let at = DateTime::parse_from_rfc3339(value.as_str()?).ok()?;
    Some(at.with_timezone(&Utc))
}

/// Returns the name of a person for display.
pub(super) fn display_name(user: &Value, member: &Value) -> Option<String> {
    [&member["nick"], &user["global_name"], &user["username"]]
        .into_iter()
        .filter_map(Value::as_str)
        .find(|name| !name.is_empty())
        .map(|name| name.chars().take(100).collect())
}

fn mentions(mentions: &Value, bot: &str) -> bool {
    let mut mentioned = mentions.as_array().into_iter().flatten();
    mentioned.any(|user| user["id"] == bot)
}

/// Returns the text without mentions of the bot, and with names in place of other mentions.
fn readable(content: &str, mentions: &Value, bot: &str) -> String {
    let mut text = content.to_owned();
    for form in [format!("<@{bot}>"), format!("<@!{bot}>")] {
        text = text.replace(&form, "");
    }
    for user in mentions.as_array().into_iter().flatten().take(100) {
        if let (Some(id), Some(name)) = (id(&user["id"]), display_name(user, &user["member"])) {
            for form in [format!("<@{id}>"), format!("<@!{id}>")] {
                text = text.replace(&form, &format!("@{name}"));
            }
        }
    }
    text.trim().to_owned()
}

fn files(attachments: &Value) -> Vec<IncomingFile> {
    let files = attachments.as_array().into_iter().flatten();
    files
        .filter_map(|file| {
            let text = |key: &str| file[key].as_str().map(ToOwned::to_owned);
            Some(IncomingFile {
                name: text("filename"),
                media_type: text("content_type"),
                size: file["size"].as_u64(),
                reference: json!({"url": file["url"].as_str()?}),
            })
        })
        .take(MAX_FILES)
        .collect()
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
