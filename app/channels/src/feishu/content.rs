//! Contents of received messages: text, mentions and files.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::platform::IncomingFile;

/// Maximum number of files of one message.
const MAX_FILES: usize = 20;
/// Maximum number of mentions that are resolved.
const MAX_MENTIONS: usize = 200;
/// Maximum length of names and keys, in bytes.
const MAX_NAME: usize = 512;

/// People that a message mentions.
#[derive(Debug, Default)]
pub(super) struct Mentions {
    /// Names by the key in the text; `None` for the bot.
    names: HashMap<String, Option<String>>,
    /// `true` if the bot is mentioned.
    pub(super) bot: bool,
}

impl Mentions {
    /// Reads the mentions of an event or of a listed message. If the id of the bot is unknown, the
    /// first mention is taken for it, because groups deliver only messages that mention the bot.
    pub(super) fn read(mentions: &Value, bot: Option<&str>) -> Self {
        let mut read = Self::default();
        let mentions = mentions.as_array().map(Vec::as_slice).unwrap_or_default();
        for mention in mentions.iter().take(MAX_MENTIONS) {
            let Some(key) = short(&mention["key"]) else {
                continue;
            };
            let id = short(&mention["id"]["open_id"]).or_else(|| short(&mention["id"]));
            let is_bot = match bot {
                Some(bot) => id == Some(bot),
                None => !read.bot && key != "@_all",
            };
            read.bot |= is_bot;
            let name = (!is_bot).then(|| short(&mention["name"]).unwrap_or("someone").to_owned());
            read.names.insert(key.to_owned(), name);
        }
        read
    }

    /// Removes the mention of the bot and writes the names of others.
    fn resolve(&self, text: &str) -> String {
        let mut resolved = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('@') {
            resolved.push_str(&rest[..at]);
            rest = &rest[at..];
            let end = rest[1..]
                .find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
                .map_or(rest.len(), |end| end + 1);
            let (key, after) = rest.split_at(end);
            rest = after;
            match self.names.get(key) {
                Some(Some(name)) => {
                    resolved.push('@');
                    resolved.push_str(name);
                }
                Some(None) => rest = rest.strip_prefix(' ').unwrap_or(rest),
                None if key == "@_all" => resolved.push_str("@all"),
                None => resolved.push_str(key),
            }
        }
        resolved.push_str(rest);
        resolved.trim().to_owned()
    }
}

/// Text and files of a message.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Parsed {
    pub(super) text: String,
    pub(super) files: Vec<IncomingFile>,
}

/// Parses a content by the kind of its message. Kinds without text and files become a note.
pub(super) fn parse(kind: &str, content: &Value, message: &str, mentions: &Mentions) -> Parsed {
    let mut parsed = Parsed::default();
    match kind {
        "text" => {
            parsed.text = mentions.resolve(content["text"].as_str().unwrap_or_default());
        }
        "post" => post(content, message, mentions, &mut parsed),
        "image" => add_file(
            &mut parsed,
            message,
            &content["image_key"],
            "image",
            content,
        ),
        "file" | "audio" | "media" => {
            add_file(&mut parsed, message, &content["file_key"], "file", content);
            if kind == "audio"
                && let Some(file) = parsed.files.last_mut()
            {
                file.media_type = Some("audio/ogg".to_owned());
            }
        }
        "merge_forward" => "[forwarded messages]".clone_into(&mut parsed.text),
        other => {
            let kind: String = other
                .chars()
                .filter(|letter| letter.is_ascii_alphanumeric() || *letter == '_')
                .take(40)
                .collect();
            parsed.text = format!("[{kind}]");
        }
    }
    if parsed.text.is_empty() && parsed.files.is_empty() && kind != "text" && kind != "post" {
        parsed.text = format!("[{kind}]");
    }
    parsed
}

fn add_file(parsed: &mut Parsed, message: &str, key: &Value, kind: &str, content: &Value) {
    let Some(key) = short(key) else {
        return;
    };
    if parsed.files.len() >= MAX_FILES {
        return;
    }
    parsed.files.push(IncomingFile {
        name: Some(match short(&content["file_name"]) {
            Some(name) => name.to_owned(),
            None => default_name(key, kind, content),
        }),
        media_type: (kind == "image").then(|| "image/png".to_owned()),
        size: content["file_size"]
            .as_u64()
            .or_else(|| content["file_size"].as_str()?.parse().ok()),
        reference: json!({"message": message, "key": key, "type": kind}),
    });
}

/// Returns a name that follows from the key of a file without a name.
fn default_name(key: &str, kind: &str, content: &Value) -> String {
    let letters: Vec<char> = key
        .chars()
        .filter(|letter| letter.is_ascii_alphanumeric() || *letter == '_')
        .collect();
    let last: String = letters[letters.len().saturating_sub(12)..].iter().collect();
    let extension = match kind {
        "image" => "png",
        _ if content["duration"].is_null() => "bin",
        // Voice messages have a duration and no name.
        _ => "opus",
    };
    format!("feishu_{last}.{extension}")
}

/// Parses a rich text: the paragraphs are separated by blank lines.
fn post(content: &Value, message: &str, mentions: &Mentions, parsed: &mut Parsed) {
    let body = if content["content"].is_array() {
        content
    } else {
        // Some clients send one body per language.
        let bodies = content.as_object().into_iter().flat_map(|map| map.values());
        match bodies.into_iter().find(|body| body["content"].is_array()) {
            Some(body) => body,
            None => content,
        }
    };
    let mut paragraphs = Vec::new();
    if let Some(title) = body["title"].as_str().filter(|title| !title.is_empty()) {
        paragraphs.push(title.to_owned());
    }
    let lines = body["content"].as_array().map(Vec::as_slice);
    for line in lines.unwrap_or_default() {
        let mut paragraph = String::new();
        let elements = line.as_array().map(Vec::as_slice).unwrap_or_default();
        for element in elements {
            post_element(element, message, mentions, &mut paragraph, parsed);
        }
        if !paragraph.trim().is_empty() {
            paragraphs.push(paragraph);
        }
    }
    parsed.text = mentions.resolve(&paragraphs.join("\n\n"));
}

fn post_element(
    element: &Value,
    message: &str,
    mentions: &Mentions,
    paragraph: &mut String,
    parsed: &mut Parsed,
) {
    let text = element["text"].as_str().unwrap_or_default();
    match element["tag"].as_str().unwrap_or_default() {
        "a" => match element["href"].as_str() {
            Some(href) if href != text => paragraph.push_str(&format!("[{text}]({href})")),
            _ => paragraph.push_str(text),
        },
        "at" => {
            let id = element["user_id"].as_str().unwrap_or_default();
            let name = short(&element["user_name"]).unwrap_or("someone");
            if mentions.names.contains_key(id) || id == "@_all" {
                paragraph.push_str(id);
            } else {
                paragraph.push('@');
                paragraph.push_str(name);
            }
        }
        "img" => add_file(parsed, message, &element["image_key"], "image", element),
        "media" | "file" => add_file(parsed, message, &element["file_key"], "file", element),
        "code_block" => {
            let language = short(&element["language"]).unwrap_or_default();
            let language = language.to_lowercase();
            paragraph.push_str(&format!("```{language}\n{}\n```", text.trim_end()));
        }
        "emotion" => {
            let emoji = short(&element["emoji_type"]).unwrap_or_default();
            paragraph.push_str(&format!(":{emoji}:"));
        }
        "hr" => paragraph.push_str("---"),
        _ => paragraph.push_str(text),
    }
}

/// Returns a text that is not empty and not too long for a name or key.
fn short(value: &Value) -> Option<&str> {
    value
        .as_str()
        .filter(|text| !text.is_empty() && text.len() <= MAX_NAME)
}

#[cfg(test)]
#[path = "content_tests.rs"]
mod tests;
