//! Effects of calls on channels and messages.

use serde_json::{Value, json};

use super::request::Answer;
use super::rooms::{BOT, Channel, DM, Rooms, THREAD, id_of, user};

/// Maximum length of a content in UTF-16 units.
const MAX_CONTENT: usize = 2000;
/// Maximum size of a sent file in bytes.
const MAX_FILE: u64 = 10 * 1024 * 1024;
/// Fields of a message body that we know.
const FIELDS: &[&str] = &[
    "content",
    "nonce",
    "enforce_nonce",
    "tts",
    "embeds",
    "allowed_mentions",
    "message_reference",
    "components",
    "sticker_ids",
    "attachments",
    "flags",
    "_files",
];

/// Checks a message body. `is_new` is `false` for an edit.
pub(super) fn check(body: &Value, is_new: bool) -> Result<(), Answer> {
    let Some(fields) = body.as_object() else {
        return Err(Answer::refused(400, 50006, "Cannot send an empty message"));
    };
    if let Some(unknown) = fields.keys().find(|key| !FIELDS.contains(&key.as_str())) {
        return Err(Answer::invalid(unknown, "unknown field"));
    }
    let content = body["content"].as_str().unwrap_or_default();
    if content.encode_utf16().count() > MAX_CONTENT {
        return Err(Answer::invalid(
            "content",
            "Must be 2000 or fewer in length.",
        ));
    }
    let files = body["_files"].as_array().map_or(&[][..], Vec::as_slice);
    if files.len() > 10 {
        return Err(Answer::invalid("files", "at most 10"));
    }
    if files
        .iter()
        .any(|file| file["size"].as_u64() > Some(MAX_FILE))
    {
        return Err(Answer::refused(413, 40005, "Request entity too large"));
    }
    if is_new && content.trim().is_empty() && files.is_empty() {
        return Err(Answer::refused(400, 50006, "Cannot send an empty message"));
    }
    let nonce = match &body["nonce"] {
        Value::String(nonce) => nonce.len(),
        Value::Number(_) | Value::Null => 1,
        _ => 0,
    };
    if !(1..=25).contains(&nonce) {
        return Err(Answer::invalid("nonce", "Must be 25 or fewer in length."));
    }
    components(&body["components"])
}

fn components(rows: &Value) -> Result<(), Answer> {
    let Some(rows) = rows.as_array() else {
        return Ok(());
    };
    let invalid = |problem: &str| Err(Answer::invalid("components", problem));
    if rows.len() > 5 {
        return invalid("at most 5 rows");
    }
    let mut ids = Vec::new();
    for row in rows {
        let buttons = row["components"].as_array().map_or(&[][..], Vec::as_slice);
        if row["type"] != json!(1) || buttons.is_empty() || buttons.len() > 5 {
            return invalid("a row has 1 to 5 components");
        }
        for button in buttons {
            let id = button["custom_id"].as_str().unwrap_or_default();
            let label = button["label"].as_str().unwrap_or_default();
            let style = button["style"].as_u64().unwrap_or_default();
            if button["type"] != json!(2) || !(1..=4).contains(&style) {
                return invalid("not a button");
            }
            if id.is_empty() || id.chars().count() > 100 || ids.contains(&id) {
                return invalid("custom_id");
            }
            if label.is_empty() || label.chars().count() > 80 {
                return invalid("label");
            }
            ids.push(id);
        }
    }
    Ok(())
}

/// Creates a message of the bot.
pub(super) fn create(rooms: &mut Rooms, channel: u64, body: &Value, base: &str) -> Answer {
    if !rooms.channels.contains_key(&channel) {
        return Answer::refused(404, 10003, "Unknown Channel");
    }
    if let Err(answer) = check(body, true) {
        return answer;
    }
    let reference = &body["message_reference"];
    if let Some(target) = id_of(&reference["message_id"]) {
        let is_known = rooms
            .messages
            .get(&target)
            .is_some_and(|message| message["channel_id"] == json!(channel.to_string()));
        if !is_known && reference["fail_if_not_exists"] != json!(false) {
            return Answer::invalid("message_reference", "Unknown message");
        }
    }
    let nonce = match &body["nonce"] {
        Value::String(nonce) => Some(nonce.clone()),
        Value::Number(nonce) => Some(nonce.to_string()),
        _ => None,
    };
    let key = nonce.clone().map(|nonce| (channel, nonce));
    if body["enforce_nonce"] == json!(true)
        && let Some(former) = key.as_ref().and_then(|key| rooms.nonces.get(key))
        && let Some(message) = rooms.messages.get(former)
    {
        return Answer::ok(message.clone());
    }
    let content = body["content"].as_str().unwrap_or_default();
    let mut message = rooms.post(channel, user(BOT, "bot", true), content);
    message["nonce"] = json!(nonce);
    if let Some(rows) = body.get("components").filter(|rows| rows.is_array()) {
        message["components"] = rows.clone();
    }
    let files: Vec<Value> = body["_files"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|file| {
            let text = |key: &str| file[key].as_str().unwrap_or_default().to_owned();
            rooms.attach(&text("name"), &text("base64"), base)
        })
        .collect();
    message["attachments"] = json!(files);
    if reference.is_object() {
        message["message_reference"] = reference.clone();
        message["type"] = json!(19);
    }
    if let Some(id) = id_of(&message["id"]) {
        rooms.messages.insert(id, message.clone());
        if let Some(key) = key {
            rooms.nonces.insert(key, id);
        }
    }
    Answer::ok(message)
}

/// Changes a message of the bot.
pub(super) fn edit(rooms: &mut Rooms, channel: u64, id: u64, body: &Value) -> Answer {
    if let Err(answer) = check(body, false) {
        return answer;
    }
    let Some(message) = of_channel(rooms, channel, id) else {
        return Answer::refused(404, 10008, "Unknown Message");
    };
    if message["author"]["id"] != json!(BOT.to_string()) {
        return Answer::refused(403, 50005, "Cannot edit a message authored by another user");
    }
    for key in ["content", "components"] {
        if let Some(value) = body.get(key) {
            message[key] = value.clone();
        }
    }
    message["edited_timestamp"] = message["timestamp"].clone();
    Answer::ok(message.clone())
}

/// Removes a message.
pub(super) fn delete(rooms: &mut Rooms, channel: u64, id: u64) -> Answer {
    if of_channel(rooms, channel, id).is_none() {
        return Answer::refused(404, 10008, "Unknown Message");
    }
    rooms.messages.remove(&id);
    Answer::new(204, Value::Null)
}

/// Returns messages after an id, newest first.
pub(super) fn list(rooms: &Rooms, channel: u64, after: Option<u64>, limit: usize) -> Answer {
    if !rooms.channels.contains_key(&channel) {
        return Answer::refused(404, 10003, "Unknown Channel");
    }
    if !(1..=100).contains(&limit) {
        return Answer::invalid("limit", "int value should be between 1 and 100");
    }
    let of_channel = json!(channel.to_string());
    let mut found: Vec<Value> = rooms
        .messages
        .iter()
        .filter(|(id, message)| {
            message["channel_id"] == of_channel && after.is_none_or(|after| **id > after)
        })
        .map(|(_, message)| message.clone())
        .collect();
    // With `after` the oldest ones are selected, without it the newest ones.
    if after.is_some() {
        found.truncate(limit);
    } else {
        let surplus = found.len().saturating_sub(limit);
        found.drain(..surplus);
    }
    found.reverse();
    Answer::ok(json!(found))
}

/// Creates the thread of a message.
pub(super) fn thread(rooms: &mut Rooms, channel: u64, id: u64, body: &Value) -> Answer {
    if of_channel(rooms, channel, id).is_none() {
        return Answer::refused(404, 10008, "Unknown Message");
    }
    let name = body["name"].as_str().unwrap_or_default();
    if name.is_empty() || name.chars().count() > 100 {
        return Answer::invalid("name", "Must be between 1 and 100 in length.");
    }
    let parent = rooms.channels.get(&channel).cloned();
    let Some(parent) = parent.filter(|parent| parent.kind != DM && parent.kind != THREAD) else {
        return Answer::refused(400, 50024, "Cannot execute action on this channel type");
    };
    if rooms.channels.contains_key(&id) {
        return Answer::refused(
            400,
            160_004,
            "A thread has already been created for this message",
        );
    }
    let thread = Channel {
        id,
        kind: THREAD,
        guild: parent.guild,
        parent: Some(parent.id),
        name: name.to_owned(),
    };
    let shown = thread.shown();
    rooms.channels.insert(id, thread);
    Answer::new(201, shown)
}

/// Adds a reaction of the bot.
pub(super) fn react(rooms: &mut Rooms, channel: u64, id: u64, emoji: &str) -> Answer {
    if of_channel(rooms, channel, id).is_none() {
        return Answer::refused(404, 10008, "Unknown Message");
    }
    if emoji.is_ascii() {
        return Answer::refused(400, 10014, "Unknown Emoji");
    }
    rooms.reactions.push((id, emoji.to_owned()));
    Answer::new(204, Value::Null)
}

fn of_channel(rooms: &mut Rooms, channel: u64, id: u64) -> Option<&mut Value> {
    let channel = json!(channel.to_string());
    let message = rooms.messages.get_mut(&id)?;
    (message["channel_id"] == channel).then_some(message)
}
