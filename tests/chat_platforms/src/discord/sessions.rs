//! Sessions of the gateway: their events, and the connections that receive them.

use std::collections::HashMap;

use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

/// Intent for messages in guilds.
const GUILD_MESSAGES: u64 = 1 << 9;
/// Intent for direct messages.
const DIRECT_MESSAGES: u64 = 1 << 12;
/// Intent for the content of messages.
pub(super) const MESSAGE_CONTENT: u64 = 1 << 15;

/// Command to a connection.
#[derive(Debug)]
pub(super) enum Out {
    /// Sends a frame.
    Frame(Value),
    /// Sends text as it is.
    Raw(String),
    /// Closes with a code.
    Close(u16),
    /// Ends the connection without a close frame.
    Drop,
}

/// Session.
#[derive(Debug)]
struct Session {
    intents: u64,
    frames: Vec<Value>,
    connection: Option<u64>,
}

/// All sessions and connections.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    sessions: HashMap<String, Session>,
    connections: HashMap<u64, UnboundedSender<Out>>,
    opened: u64,
    begun: u64,
}

impl Sessions {
    /// Registers a connection and returns its number.
    pub(super) fn connect(&mut self, out: UnboundedSender<Out>) -> u64 {
        self.opened += 1;
        self.connections.insert(self.opened, out);
        self.opened
    }

    /// Removes a connection. Its session stays, unless `ends` is set.
    pub(super) fn disconnect(&mut self, connection: u64, ends: bool) {
        self.connections.remove(&connection);
        self.sessions.retain(|_, session| {
            let is_of_it = session.connection == Some(connection);
            if is_of_it {
                session.connection = None;
            }
            !(is_of_it && ends)
        });
    }

    /// Returns the number of the last connection.
    pub(super) fn last(&self) -> u64 {
        self.opened
    }

    /// Returns the number of open connections.
    pub(super) fn open(&self) -> usize {
        self.connections.len()
    }

    /// Begins a session and returns its id.
    pub(super) fn begin(&mut self, connection: u64, intents: u64) -> String {
        self.begun += 1;
        let id = format!("session-{}", self.begun);
        let session = Session {
            intents,
            frames: Vec::new(),
            connection: Some(connection),
        };
        self.sessions.insert(id.clone(), session);
        id
    }

    /// Continues a session after a sequence number: its connection receives what follows. `None` if
    /// the session is unknown; `Some(false)` if the number is too high.
    pub(super) fn resume(&mut self, id: &str, connection: u64, seq: usize) -> Option<bool> {
        let session = self.sessions.get_mut(id)?;
        if seq > session.frames.len() {
            self.sessions.remove(id);
            return Some(false);
        }
        if let Some(former) = session.connection.replace(connection)
            && let Some(out) = self.connections.get(&former)
        {
            let _ = out.send(Out::Close(4000));
        }
        let out = self.connections.get(&connection)?;
        for frame in &session.frames[seq..] {
            let _ = out.send(Out::Frame(frame.clone()));
        }
        Some(true)
    }

    /// Sends a frame without sequence number to one connection.
    pub(super) fn reply(&self, connection: u64, frame: Value) {
        if let Some(out) = self.connections.get(&connection) {
            let _ = out.send(Out::Frame(frame));
        }
    }

    /// Sends an event to one session.
    pub(super) fn send(&mut self, id: &str, kind: &str, data: Value) {
        if let Some(session) = self.sessions.get_mut(id) {
            deliver(session, &self.connections, kind, data);
        }
    }

    /// Sends an event to every session whose intents include it.
    pub(super) fn dispatch(&mut self, kind: &str, data: &Value) {
        for session in self.sessions.values_mut() {
            let in_guild = data.get("guild_id").is_some();
            let needed = if in_guild {
                GUILD_MESSAGES
            } else {
                DIRECT_MESSAGES
            };
            if kind == "MESSAGE_CREATE" && session.intents & needed == 0 {
                continue;
            }
            let mut data = data.clone();
            let mentions = data["mentions"].as_array().is_some_and(|m| !m.is_empty());
            if kind == "MESSAGE_CREATE"
                && in_guild
                && !mentions
                && session.intents & MESSAGE_CONTENT == 0
            {
                data["content"] = json!("");
                data["attachments"] = json!([]);
            }
            deliver(session, &self.connections, kind, data);
        }
    }

    /// Sends the same command to every connection.
    pub(super) fn command(&self, command: impl Fn() -> Out) {
        for out in self.connections.values() {
            let _ = out.send(command());
        }
    }

    /// Ends all sessions; their connections stay.
    pub(super) fn forget(&mut self) {
        self.sessions.clear();
    }

    /// Sends the last event of each session once more, with a new sequence number.
    pub(super) fn repeat_last(&mut self) {
        for session in self.sessions.values_mut() {
            let last = session.frames.iter().rev();
            let found = last.clone().find(|frame| frame["t"] == "MESSAGE_CREATE");
            if let Some(data) = found.map(|frame| frame["d"].clone()) {
                deliver(session, &self.connections, "MESSAGE_CREATE", data);
            }
        }
    }
}

/// Appends an event to a session and sends it to its connection.
fn deliver(
    session: &mut Session,
    connections: &HashMap<u64, UnboundedSender<Out>>,
    kind: &str,
    data: Value,
) {
    let seq = session.frames.len() + 1;
    let frame = json!({"op": 0, "t": kind, "s": seq, "d": data});
    session.frames.push(frame.clone());
    if let Some(out) = session.connection.and_then(|id| connections.get(&id)) {
        let _ = out.send(Out::Frame(frame));
    }
}
