//! Actions of people on the platform in memory.

use chrono::DateTime;
use serde_json::Value;

use super::memory::MemoryPlatform;
use super::message::MemoryMessage;
use crate::platform::{Chat, ChatKind, ChatMessage, Event, EventBody, Press, Sender};

impl MemoryPlatform {
    /// Delivers an event; one that was acknowledged before is delivered again.
    pub fn deliver(&self, event: Event) {
        self.queue(event);
    }

    /// Delivers a message of a person and returns its id.
    pub fn say(&self, chat: &str, person: &str, text: &str) -> String {
        let event = self.message(chat, person, text);
        let id = event.id.clone();
        self.deliver(event);
        id
    }

    /// Builds a message of a person. A chat whose id begins with `g` is a group.
    pub fn message(&self, chat: &str, person: &str, text: &str) -> Event {
        let id = self.new_id();
        self.event(
            &id,
            chat,
            person,
            EventBody::Message(ChatMessage {
                text: text.to_owned(),
                addressed: true,
                ..ChatMessage::default()
            }),
        )
    }

    /// Delivers a press of the button of a message.
    pub fn press(&self, person: &str, message: &MemoryMessage, button: usize) {
        let id = format!("press:{}", self.new_id());
        let body = EventBody::Press(Press {
            data: message.buttons[button].clone(),
            message: Some(message.id.clone()),
        });
        self.deliver(self.event(&id, &message.chat, person, body));
    }

    fn event(&self, id: &str, chat: &str, person: &str, body: EventBody) -> Event {
        let kind = if chat.starts_with('g') {
            ChatKind::Group
        } else {
            ChatKind::Direct
        };
        Event {
            id: id.to_owned(),
            workspace: String::new(),
            chat: Chat {
                id: chat.to_owned(),
                kind,
                parent: None,
            },
            sender: Sender {
                id: person.to_owned(),
                name: None,
            },
            at: DateTime::UNIX_EPOCH,
            body,
            context: Value::Null,
        }
    }
}
