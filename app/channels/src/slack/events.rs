//! Events of Slack in the common form.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::text;
use crate::platform::{
    Chat, ChatKind, ChatMessage, Event, EventBody, IncomingFile, Press, Sender, cut_text,
};

/// Maximum number of files of a message.
const MAX_FILES: usize = 50;
/// Maximum length of an id.
const MAX_ID: usize = 64;

/// The bot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Me {
    /// Team.
    pub(super) team: String,
    /// User.
    pub(super) user: String,
    /// `true` if messages of direct chats are conversations of their own.
    pub(super) dm_threads: bool,
}

/// Result of decoding.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Decoded {
    /// Event.
    Event(Box<Event>),
    /// Event that concerns no conversation.
    Ignored,
    /// Invalid event.
    Broken(&'static str),
}

/// Decodes the payload of an envelope that arrived at `now`.
pub(super) fn decode(kind: &str, payload: &Value, me: &Me, now: DateTime<Utc>) -> Decoded {
    match kind {
        "events_api" => {
            let event = &payload["event"];
            let team = id(&payload["team_id"]).unwrap_or(&me.team);
            match event["type"].as_str() {
                Some("message" | "app_mention") => match id(&event["channel"]) {
                    Some(channel) => message(event, team, channel, me),
                    None => Decoded::Broken("a message without a channel"),
                },
                Some(_) => Decoded::Ignored,
                None => Decoded::Broken("an event without a type"),
            }
        }
        "interactive" => match payload["type"].as_str() {
            Some("block_actions") => press(payload, me),
            Some(_) => Decoded::Ignored,
            None => Decoded::Broken("an interaction without a type"),
        },
        "slash_commands" => command(payload, me, now),
        _ => Decoded::Ignored,
    }
}

/// Decodes a message of an event or of a history.
pub(super) fn message(message: &Value, team: &str, channel: &str, me: &Me) -> Decoded {
    let subtype = message["subtype"].as_str().unwrap_or_default();
    let by_bot = !message["bot_id"].is_null() || message["user"] == me.user.as_str();
    let is_message = matches!(subtype, "" | "file_share" | "thread_broadcast");
    if by_bot || !is_message || message["hidden"] == true || message["user"] == "USLACKBOT" {
        return Decoded::Ignored;
    }
    let Some(user) = id(&message["user"]) else {
        return Decoded::Broken("a message without a user");
    };
    let Some((ts, at)) = timestamp(&message["ts"]) else {
        return Decoded::Broken("a message without a timestamp");
    };
    let thread = timestamp(&message["thread_ts"]).map(|(thread, _)| thread);
    let raw = message["text"].as_str().unwrap_or_default();
    let is_direct = is_direct(channel, message["channel_type"].as_str());
    let addressed = is_direct
        || message["type"] == "app_mention"
        || text::mentions(raw, &me.user)
        || message["parent_user_id"] == me.user.as_str();
    let plain = text::unescape(text::without_leading_mention(raw, &me.user));
    let (plain, cut) = cut_text(plain);
    let files: Vec<IncomingFile> = message["files"]
        .as_array()
        .map(|files| files.iter().filter_map(file).take(MAX_FILES).collect())
        .unwrap_or_default();
    if plain.trim().is_empty() && files.is_empty() {
        return Decoded::Ignored;
    }
    let root = thread.unwrap_or(ts);
    // A person of another organization is in a shared channel with a team of their own.
    let home = id(&message["user_team"])
        .or_else(|| id(&message["team"]))
        .unwrap_or(team);
    Decoded::Event(Box::new(Event {
        id: ts.to_owned(),
        workspace: team.to_owned(),
        chat: chat(channel, is_direct),
        sender: Sender {
            id: user.to_owned(),
            name: None,
        },
        at,
        body: EventBody::Message(ChatMessage {
            text: plain,
            files,
            topic: (!is_direct || me.dm_threads).then(|| root.to_owned()),
            reply_to: thread.filter(|thread| *thread != ts).map(str::to_owned),
            album: None,
            addressed,
            cut,
        }),
        context: json!({"team": home, "thread": root}),
    }))
}

fn press(payload: &Value, me: &Me) -> Decoded {
    let container = &payload["container"];
    let action = &payload["actions"][0];
    let Some(user) = id(&payload["user"]["id"]) else {
        return Decoded::Broken("a press without a user");
    };
    let Some(channel) = id(&payload["channel"]["id"]).or_else(|| id(&container["channel_id"]))
    else {
        return Decoded::Ignored;
    };
    let Some((action_ts, at)) = timestamp(&action["action_ts"]) else {
        return Decoded::Broken("a press without a timestamp");
    };
    let Some(data) = action["value"].as_str().filter(|data| data.len() <= 2_000) else {
        return Decoded::Ignored;
    };
    let message =
        timestamp(&payload["message"]["ts"]).or_else(|| timestamp(&container["message_ts"]));
    let thread = timestamp(&payload["message"]["thread_ts"])
        .or_else(|| timestamp(&container["thread_ts"]))
        .or(message);
    let team = id(&payload["team"]["id"]).unwrap_or(&me.team);
    Decoded::Event(Box::new(Event {
        id: format!("press:{action_ts}:{user}"),
        workspace: team.to_owned(),
        chat: chat(channel, is_direct(channel, None)),
        sender: Sender {
            id: user.to_owned(),
            name: None,
        },
        at,
        body: EventBody::Press(Press {
            data: data.to_owned(),
            message: message.map(|(ts, _)| ts.to_owned()),
        }),
        context: json!({"team": team, "thread": thread.map(|(ts, _)| ts)}),
    }))
}

/// Decodes a slash command, which has no message, no thread and no time of its own.
fn command(payload: &Value, me: &Me, now: DateTime<Utc>) -> Decoded {
    let name = payload["command"].as_str().unwrap_or_default();
    let trigger = payload["trigger_id"].as_str().unwrap_or_default();
    let is_trigger = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.');
    let (Some(user), Some(channel)) = (id(&payload["user_id"]), id(&payload["channel_id"])) else {
        return Decoded::Broken("a command without a user or channel");
    };
    if !name.starts_with('/') || trigger.is_empty() || trigger.len() > 128 || !is_trigger(trigger) {
        return Decoded::Broken("a command without a name or id");
    }
    let arguments = text::unescape(payload["text"].as_str().unwrap_or_default());
    let line = format!("{name} {}", arguments.trim());
    let (text, cut) = cut_text(line.trim().to_owned());
    let team = id(&payload["team_id"]).unwrap_or(&me.team);
    Decoded::Event(Box::new(Event {
        id: format!("command:{trigger}"),
        workspace: team.to_owned(),
        chat: chat(channel, is_direct(channel, None)),
        sender: Sender {
            id: user.to_owned(),
            name: None,
        },
        at: now,
        body: EventBody::Message(ChatMessage {
            text,
            addressed: true,
            cut,
            ..ChatMessage::default()
        }),
        context: json!({"team": team}),
    }))
}

fn chat(channel: &str, is_direct: bool) -> Chat {
    Chat {
        id: channel.to_owned(),
        kind: if is_direct {
            ChatKind::Direct
        } else {
            ChatKind::Group
        },
        parent: None,
    }
}

fn is_direct(channel: &str, kind: Option<&str>) -> bool {
    match kind {
        Some(kind) => kind == "im",
        None => channel.starts_with('D'),
    }
}

fn file(file: &Value) -> Option<IncomingFile> {
    let file_id = id(&file["id"])?;
    let text_of = |name: &str, max: usize| {
        let text = file[name].as_str().filter(|text| !text.is_empty());
        text.map(|text| text::prefix(text, max).to_owned())
    };
    let url = text_of("url_private_download", 4096).or_else(|| text_of("url_private", 4096));
    Some(IncomingFile {
        name: text_of("name", 1024),
        media_type: text_of("mimetype", 256),
        size: file["size"].as_u64(),
        reference: json!({"id": file_id, "url": url}),
    })
}

/// Returns a plausible id.
fn id(value: &Value) -> Option<&str> {
    let text = value.as_str()?;
    let is_id = (1..=MAX_ID).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    is_id.then_some(text)
}

/// Returns a timestamp and its time.
fn timestamp(value: &Value) -> Option<(&str, DateTime<Utc>)> {
    let ts = value.as_str().filter(|ts| text::is_timestamp(ts))?;
    let (seconds, fraction) = ts.split_once('.')?;
    let nanos = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
    let at = DateTime::from_timestamp(seconds.parse().ok()?, nanos)?;
    Some((ts, at))
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
