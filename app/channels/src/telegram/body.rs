//! Request bodies of messages, and the choice of the next form after a refusal.

use serde_json::{Map, Value, json};

use crate::markup::Part;
use crate::platform::{Button, Target};

use super::failure::Problem;

/// Maximum length of a button's data in bytes.
const MAX_BUTTON_DATA: usize = 64;

/// Way in which the text of a message is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// Rich message.
    Rich,
    /// HTML subset.
    Html,
    /// Text without markup.
    Plain,
}

/// Form of one attempt to send a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Form {
    /// Chat.
    pub(super) chat: String,
    /// Topic.
    pub(super) topic: Option<i64>,
    /// Answered message.
    pub(super) reply_to: Option<i64>,
    /// Style of the text.
    pub(super) style: Style,
    migrated: bool,
}

impl Form {
    /// Returns the first form for a destination.
    pub(super) fn first(target: &Target, style: Style) -> Self {
        let number = |id: &Option<String>| id.as_deref().and_then(|id| id.parse().ok());
        Self {
            chat: target.chat.id.clone(),
            topic: number(&target.topic),
            reply_to: number(&target.reply_to),
            style,
            migrated: false,
        }
    }

    /// Returns the form for another chat id.
    pub(super) fn in_chat(self, chat: String) -> Self {
        Self { chat, ..self }
    }

    /// Returns the form to use after a problem; `None` if another form would not help. Every step
    /// removes something, so that the attempts end.
    pub(super) fn after(&self, problem: Problem) -> Option<Self> {
        let mut next = self.clone();
        match problem {
            Problem::ReplyMissing => next.reply_to = None,
            Problem::TopicMissing => next.topic = None,
            Problem::Migrated(to) if !self.migrated => {
                next.chat = to.to_string();
                next.migrated = true;
                // Ids of messages change with the chat.
                next.reply_to = None;
            }
            Problem::NotFound | Problem::Refused | Problem::BadMarkup
                if self.style == Style::Rich =>
            {
                next.style = Style::Html;
            }
            Problem::BadMarkup => next.style = Style::Plain,
            _ => return None,
        }
        (next != *self).then_some(next)
    }

    /// Returns the method that sends a text in this form.
    pub(super) fn send_method(&self) -> &'static str {
        match self.style {
            Style::Rich => "sendRichMessage",
            Style::Html | Style::Plain => "sendMessage",
        }
    }

    /// Returns the parameters of the destination.
    pub(super) fn place(&self) -> Map<String, Value> {
        let mut place = Map::new();
        place.insert("chat_id".to_owned(), chat_id(&self.chat));
        if let Some(topic) = self.topic {
            place.insert("message_thread_id".to_owned(), json!(topic));
        }
        if let Some(reply_to) = self.reply_to {
            place.insert(
                "reply_parameters".to_owned(),
                json!({"message_id": reply_to, "allow_sending_without_reply": true}),
            );
        }
        place
    }

    /// Builds the parameters of a new text message.
    pub(super) fn text(&self, part: &Part, keyboard: Option<Value>) -> Value {
        let mut body = self.place();
        self.insert_text(&mut body, part);
        insert_keyboard(&mut body, keyboard);
        Value::Object(body)
    }

    /// Builds the parameters of an edit. Without a keyboard, that of the message is removed.
    pub(super) fn edit(&self, message: i64, part: &Part, keyboard: Option<Value>) -> Value {
        let mut body = Map::new();
        body.insert("chat_id".to_owned(), chat_id(&self.chat));
        body.insert("message_id".to_owned(), json!(message));
        self.insert_text(&mut body, part);
        insert_keyboard(&mut body, keyboard);
        Value::Object(body)
    }

    fn insert_text(&self, body: &mut Map<String, Value>, part: &Part) {
        match self.style {
            Style::Rich => {
                body.insert("rich_message".to_owned(), json!({"html": part.markup}));
                return;
            }
            Style::Html => {
                body.insert("text".to_owned(), json!(part.markup));
                body.insert("parse_mode".to_owned(), json!("HTML"));
            }
            Style::Plain => {
                body.insert("text".to_owned(), json!(part.plain));
            }
        }
        // A preview would make Telegram fetch an address that the model wrote.
        body.insert(
            "link_preview_options".to_owned(),
            json!({"is_disabled": true}),
        );
    }
}

fn insert_keyboard(body: &mut Map<String, Value>, keyboard: Option<Value>) {
    if let Some(keyboard) = keyboard {
        body.insert("reply_markup".to_owned(), keyboard);
    }
}

/// Returns a chat id as a number where it is one.
pub(super) fn chat_id(chat: &str) -> Value {
    chat.parse::<i64>()
        .map_or_else(|_| json!(chat), |id| json!(id))
}

/// Builds an inline keyboard with one button per row; `None` without a valid button.
pub(super) fn keyboard(buttons: &[Button]) -> Option<Value> {
    let rows: Vec<Value> = buttons
        .iter()
        .filter(|button| (1..=MAX_BUTTON_DATA).contains(&button.data.len()))
        .map(|button| {
            let label = match button.label.trim() {
                "" => button.data.as_str(),
                label => label,
            };
            json!([{"text": label, "callback_data": button.data}])
        })
        .collect();
    (!rows.is_empty()).then(|| json!({"inline_keyboard": rows}))
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod tests;
