//! State of the fake.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

use super::files::{self, Uploads};
use super::options::WeComOptions;
use crate::common::{Calls, Faults, Window};

/// Kind of a visible message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ShownKind {
    /// Stream in answer to a message.
    Stream,
    /// Message that the bot sent on its own.
    Markdown,
    /// File or image.
    File,
}

/// Message that a person sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shown {
    /// Person or group.
    pub chat: String,
    /// Kind.
    pub kind: ShownKind,
    /// Text, or id of the media.
    pub content: String,
    /// `false` while a stream is in progress.
    pub finished: bool,
}

/// Frame to the connected bot.
#[derive(Debug)]
pub(super) enum Outgoing {
    Text(String),
    Binary(Vec<u8>),
    Displace,
    Drop,
}

/// Stream in answer to a request.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) id: String,
    pub(super) begun: Instant,
    pub(super) updated: Instant,
    pub(super) shown: usize,
}

/// Message of a person that can be answered on its connection.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) connection: u64,
    pub(super) chat: String,
    pub(super) stream: Option<Stream>,
}

/// Message of a person that later connections receive again.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) chat: String,
    pub(super) body: Value,
    pub(super) at: Instant,
}

/// Connected bot.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) number: u64,
    pub(super) sender: UnboundedSender<Outgoing>,
}

/// Windows of one conversation.
#[derive(Debug)]
pub(super) struct Rate {
    minute: Window,
    hour: Window,
}

/// Everything that changes.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) connection: Option<Connection>,
    pub(super) subscriptions: u64,
    pub(super) sequence: u64,
    pub(super) questions: HashMap<String, Question>,
    pub(super) chats: HashSet<String>,
    pub(super) said: Vec<Said>,
    pub(super) shown: Vec<Shown>,
    pub(super) rates: HashMap<String, Rate>,
    pub(super) ignores_pings: bool,
    pub(super) ahead: Duration,
    pub(super) offered: HashMap<String, Vec<u8>>,
    pub(super) uploads: Uploads,
}

impl State {
    /// Returns the next number of a sequence.
    pub(super) fn next(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// Delivers a message of a person as a request of its own. Returns the id of the request, or
    /// `None` if no bot is connected.
    fn deliver(&mut self, chat: String, body: &Value) -> Option<String> {
        let req_id = format!("REQ{}", self.next());
        let connection = self.connection.as_ref()?;
        let frame = json!({
            "cmd": "aibot_msg_callback",
            "headers": {"req_id": req_id},
            "body": body,
        });
        let question = Question {
            connection: connection.number,
            chat,
            stream: None,
        };
        connection
            .sender
            .send(Outgoing::Text(frame.to_string()))
            .ok()?;
        self.questions.insert(req_id.clone(), question);
        Some(req_id)
    }

    /// Delivers the messages of the last `redelivery` again.
    pub(super) fn redeliver(&mut self, redelivery: Duration) {
        let now = self.now();
        let messages: Vec<(String, Value)> = self
            .said
            .iter()
            .filter(|said| now.duration_since(said.at) < redelivery)
            .map(|said| (said.chat.clone(), said.body.clone()))
            .collect();
        for (chat, body) in messages {
            self.deliver(chat, &body);
        }
    }

    /// Returns the time of the fake.
    pub(super) fn now(&self) -> Instant {
        Instant::now() + self.ahead
    }

    /// Counts a message to a conversation. Returns `false` if there are too many.
    pub(super) fn count(&mut self, chat: &str) -> bool {
        let now = self.now();
        let rate = self.rates.entry(chat.to_owned()).or_insert_with(|| Rate {
            minute: Window::new(30, Duration::from_secs(60)),
            hour: Window::new(1_000, Duration::from_secs(3_600)),
        });
        rate.minute.call(now).is_ok() && rate.hour.call(now).is_ok()
    }
}

/// The fake behind its connections.
#[derive(Debug)]
pub(super) struct World {
    pub(super) options: WeComOptions,
    pub(super) base: String,
    pub(super) calls: Calls,
    pub(super) faults: Faults,
    pub(super) state: Mutex<State>,
}

impl World {
    pub(super) fn new(options: WeComOptions, base: String) -> Self {
        Self {
            options,
            base,
            calls: Calls::default(),
            faults: Faults::default(),
            state: Mutex::default(),
        }
    }

    /// Sends to the connected bot. Returns `false` if there is none.
    pub(super) fn send(&self, outgoing: Outgoing) -> bool {
        let state = self.state.lock();
        state
            .connection
            .as_ref()
            .is_some_and(|connection| connection.sender.send(outgoing).is_ok())
    }

    /// Sends a message of a person.
    pub(super) fn say(&self, person: &str, group: Option<&str>, content: Value) -> Option<String> {
        let mut state = self.state.lock();
        let number = state.next();
        let chat = group.unwrap_or(person).to_owned();
        state.chats.insert(chat.clone());
        let mut body = json!({
            "msgid": format!("CAIQ{number}"),
            "aibotid": "AIB",
            "chattype": if group.is_some() { "group" } else { "single" },
            "from": {"userid": person},
        });
        if let (Some(body), Value::Object(content)) = (body.as_object_mut(), content) {
            body.extend(content);
            if let Some(group) = group {
                body.insert("chatid".to_owned(), json!(group));
            }
        }
        let redelivery = self.options.redelivery;
        if !redelivery.is_zero() {
            let now = state.now();
            state
                .said
                .retain(|said| now.duration_since(said.at) < redelivery);
            state.said.push(Said {
                chat: chat.clone(),
                body: body.clone(),
                at: now,
            });
        }
        state.deliver(chat, &body)
    }

    /// Offers an encrypted file.
    pub(super) fn offer(&self, content: &[u8]) -> Value {
        let key: [u8; 32] = rand::random();
        let mut state = self.state.lock();
        let id = format!("F{}", state.next());
        state
            .offered
            .insert(id.clone(), files::encrypt(content, &key));
        json!({
            "url": format!("{}/files/{id}?sign=abc", self.base),
            "aeskey": files::encode_key(&key),
        })
    }
}
