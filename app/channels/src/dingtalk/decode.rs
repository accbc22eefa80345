//! Messages of DingTalk as events.

use chrono::DateTime;
use serde_json::{Value, json};

use crate::platform::{
    Chat, ChatKind, ChatMessage, Event, EventBody, IncomingFile, Sender, cut_text,
};

/// Maximum number of files of a message.
const MAX_FILES: usize = 20;
/// Maximum number of parts of a rich text.
const MAX_PARTS: usize = 500;
/// Maximum length of an id in bytes.
const MAX_ID: usize = 256;

/// Decodes a message. `Ok(None)` if its type has neither text nor files.
///
/// # Errors
/// Words for the log if it is malformed.
pub(super) fn message(data: &Value, robot: &str) -> Result<Option<Event>, &'static str> {
    let message = id(&data["msgId"]).ok_or("a message without id")?;
    let conversation = id(&data["conversationId"]).ok_or("a message without conversation")?;
    let person = id(&data["senderStaffId"])
        .or_else(|| id(&data["senderId"]))
        .ok_or("a message without sender")?;
    let is_group = match data["conversationType"].as_str() {
        Some("1") => false,
        Some("2") => true,
        _ => return Err("a message without kind of conversation"),
    };
    let robot = id(&data["robotCode"]).unwrap_or(robot);
    let Some((text, files)) = content(data, robot) else {
        return Ok(None);
    };
    let (text, cut) = cut_text(text.trim().to_owned());
    let is_listed = data["isInAtList"].as_bool().unwrap_or(true);
    let created = data["createAt"]
        .as_i64()
        .or_else(|| data["createAt"].as_str()?.parse().ok());
    let replied = &data["text"]["repliedMsg"]["msgId"];
    Ok(Some(Event {
        id: message.to_owned(),
        workspace: id(&data["chatbotCorpId"]).unwrap_or_default().to_owned(),
        // A direct chat is addressed by its person.
        chat: Chat {
            id: if is_group { conversation } else { person }.to_owned(),
            kind: if is_group {
                ChatKind::Group
            } else {
                ChatKind::Direct
            },
            parent: None,
        },
        sender: Sender {
            id: person.to_owned(),
            name: data["senderNick"]
                .as_str()
                .filter(|name| !name.is_empty())
                .map(|name| name.chars().take(100).collect()),
        },
        at: created
            .and_then(DateTime::from_timestamp_millis)
            .unwrap_or_default(),
        body: EventBody::Message(ChatMessage {
            text,
            files,
            topic: None,
            reply_to: id(replied)
                .or_else(|| id(&data["originalMsgId"]))
                .map(ToOwned::to_owned),
            album: None,
            addressed: !is_group || is_listed,
            cut,
        }),
        context: json!({"robot": robot}),
    }))
}

fn id(value: &Value) -> Option<&str> {
    value
        .as_str()
        .filter(|id| (1..=MAX_ID).contains(&id.len()) && !id.contains(char::is_control))
}

/// Returns the text and the files of a message.
fn content(data: &Value, robot: &str) -> Option<(String, Vec<IncomingFile>)> {
    let content = &data["content"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (text, files) = match data["msgtype"].as_str()? {
        "text" => (text(&data["text"]["content"]), Vec::new()),
        "richText" => rich_text(&content["richText"], robot),
        "picture" => (String::new(), file(content, "picture.png", robot)),
        "file" => (String::new(), file(content, "file", robot)),
        "video" => (String::new(), file(content, "video.mp4", robot)),
        "audio" => {
            let recognized = text(&content["recognition"]);
            (recognized, file(content, "voice.amr", robot))
        }
        kind => {
            tracing::info!(kind, "dingtalk sent a message of an unknown kind");
            return None;
        }
    };
    (!text.trim().is_empty() || !files.is_empty() || data["msgtype"] == "text")
        .then_some((text, files))
}

fn rich_text(parts: &Value, robot: &str) -> (String, Vec<IncomingFile>) {
    let mut text = String::new();
    let mut files = Vec::new();
    for part in parts.as_array().into_iter().flatten().take(MAX_PARTS) {
        text.push_str(part["text"].as_str().unwrap_or_default());
        if files.len() < MAX_FILES {
            let name = format!("picture-{}.png", files.len() + 1);
            files.extend(file(part, &name, robot));
        }
    }
    (text, files)
}

fn file(content: &Value, default_name: &str, robot: &str) -> Vec<IncomingFile> {
    let Some(code) = content["downloadCode"].as_str() else {
        return Vec::new();
    };
    let name = content["fileName"].as_str().unwrap_or(default_name);
    vec![IncomingFile {
        name: Some(name.to_owned()),
        media_type: None,
        size: content["fileSize"].as_u64(),
        reference: json!({"code": code, "robot": robot}),
    }]
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
