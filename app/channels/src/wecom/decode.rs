//! Messages of persons as events.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::route::Question;
use crate::platform::{
    Chat, ChatKind, ChatMessage, Event, EventBody, IncomingFile, Sender, cut_text, floor_boundary,
};

/// Maximum length of an id in bytes.
const MAX_ID_BYTES: usize = 256;
/// Maximum length of an address in bytes.
const MAX_ADDRESS_BYTES: usize = 8 * 1024;
/// Maximum number of files of a message.
const MAX_FILES: usize = 32;
/// Maximum length of a quoted text in bytes.
const MAX_QUOTE_BYTES: usize = 4 * 1024;

/// Decodes a message. `now` is its time if the platform names none. The error says what is wrong,
/// without the content.
pub(super) fn message(
    body: &Value,
    question: &Question,
    now: DateTime<Utc>,
) -> Result<Event, &'static str> {
    let id = id(&body["msgid"]).ok_or("msgid is missing")?;
    let person = id_of(&body["from"], "userid").ok_or("from.userid is missing")?;
    let group = id_of(body, "chatid");
    let is_group = body["chattype"] == "group";
    let chat = match group {
        Some(group) if is_group => Chat {
            id: group,
            kind: ChatKind::Group,
            parent: None,
        },
        None if is_group => return Err("chatid is missing"),
        _ => Chat {
            id: person.clone(),
            kind: ChatKind::Direct,
            parent: None,
        },
    };
    let mut content = DecodedContent::default();
    content.add(body);
    let mut text = content.text;
    if is_group {
        text = without_mention(&text).to_owned();
    }
    let quote = quote(&body["quote"], &mut content.files);
    if !quote.is_empty() && !text.trim_start().starts_with('/') {
        text = format!("{quote}\n\n{text}");
    }
    if text.trim().is_empty() && content.files.is_empty() {
        return Err("the content is empty or of an unknown kind");
    }
    let (text, cut) = cut_text(text);
    let at = body["create_time"]
        .as_i64()
        .filter(|seconds| *seconds > 0)
        .and_then(|seconds| DateTime::from_timestamp(seconds, 0))
        .unwrap_or(now);
    Ok(Event {
        id,
        workspace: String::new(),
        chat,
        sender: Sender {
            id: person,
            name: None,
        },
        at,
        body: EventBody::Message(ChatMessage {
            text,
            files: content.files,
            topic: None,
            reply_to: None,
            album: None,
            // The platform delivers nothing else.
            addressed: true,
            cut,
        }),
        context: json!({"req_id": question.req_id, "connection": question.connection}),
    })
}

fn id(value: &Value) -> Option<String> {
    value
        .as_str()
        .filter(|id| !id.is_empty() && id.len() <= MAX_ID_BYTES)
        .map(str::to_owned)
}

fn id_of(object: &Value, key: &str) -> Option<String> {
    id(&object[key])
}

/// Text and files of a message.
#[derive(Debug, Default)]
struct DecodedContent {
    text: String,
    files: Vec<IncomingFile>,
}

impl DecodedContent {
    /// Adds a message, or an item of a mixed message.
    fn add(&mut self, item: &Value) {
        match item["msgtype"].as_str().unwrap_or_default() {
            "text" => self.add_text(&item["text"]["content"]),
            "voice" => self.add_text(&item["voice"]["content"]),
            kind @ ("image" | "file" | "video") => self.add_file(kind, &item[kind]),
            "mixed" => {
                for item in item["mixed"]["msg_item"].as_array().into_iter().flatten() {
                    // Items hold no items of their own.
                    if item["msgtype"] != "mixed" {
                        self.add(item);
                    }
                }
            }
            _ => {}
        }
    }

    fn add_text(&mut self, text: &Value) {
        let Some(text) = text.as_str().filter(|text| !text.trim().is_empty()) else {
            return;
        };
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(text);
    }

    fn add_file(&mut self, kind: &str, file: &Value) {
        let text = |key: &str| {
            file[key]
                .as_str()
                .filter(|text| !text.is_empty() && text.len() <= MAX_ADDRESS_BYTES)
        };
        let Some(url) = text("url") else { return };
        if self.files.len() >= MAX_FILES {
            return;
        }
        let name = text("filename")
            .or_else(|| text("name"))
            .map(str::to_owned)
            .unwrap_or_else(|| default_name(kind, self.files.len() + 1));
        self.files.push(IncomingFile {
            name: Some(name),
            media_type: None,
            size: file["filesize"].as_u64(),
            reference: json!({"url": url, "aeskey": text("aeskey")}),
        });
    }
}

/// Returns the name of a file without a name. The platform converts images to JPEG.
fn default_name(kind: &str, number: usize) -> String {
    let extension = match kind {
        "image" => ".jpg",
        "video" => ".mp4",
        _ => "",
    };
    format!("{kind}-{number}{extension}")
}

/// Returns a quoted message as Markdown, and adds its files.
fn quote(quote: &Value, files: &mut Vec<IncomingFile>) -> String {
    let mut content = DecodedContent::default();
    content.add(quote);
    let room = MAX_FILES.saturating_sub(files.len());
    files.extend(content.files.into_iter().take(room));
    let text = &content.text[..floor_boundary(&content.text, MAX_QUOTE_BYTES)];
    let lines: Vec<String> = text.lines().map(|line| format!("> {line}")).collect();
    lines.join("\n")
}

/// Returns the text of a group message without the name of the bot at its beginning.
fn without_mention(text: &str) -> &str {
    let text = text.trim_start();
    if !text.starts_with('@') {
        return text;
    }
    text.split_once(char::is_whitespace)
        .map_or("", |(_, rest)| rest.trim_start())
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
