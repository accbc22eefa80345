//! Messages that wait for their acknowledgement, and the connections that receive them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

/// Topic of messages.
pub(super) const TOPIC: &str = "/v1.0/im/bot/messages/get";

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
    /// Stops reading and writing without closing.
    Freeze,
}

/// Message in delivery.
#[derive(Debug)]
struct Waiting {
    data: String,
    frame: Option<String>,
    at: Option<Instant>,
}

/// Deliveries of messages.
#[derive(Debug, Default)]
pub(super) struct Deliveries {
    connections: BTreeMap<u64, UnboundedSender<Out>>,
    waiting: Vec<Waiting>,
    acknowledged: Vec<Value>,
    given: u64,
    turn: u64,
}

impl Deliveries {
    /// Registers a connection, which receives everything that waits for one.
    pub(super) fn connect(&mut self, out: UnboundedSender<Out>) -> u64 {
        self.given += 1;
        let number = self.given;
        self.connections.insert(number, out);
        self.deliver(Duration::MAX);
        number
    }

    /// Removes a connection; what it did not acknowledge is delivered to others.
    pub(super) fn disconnect(&mut self, number: u64) {
        self.connections.remove(&number);
        let prefix = format!("{number}-");
        for waiting in &mut self.waiting {
            let was_there = waiting.frame.as_ref();
            if was_there.is_some_and(|frame| frame.starts_with(&prefix)) {
                waiting.at = None;
            }
        }
        self.deliver(Duration::MAX);
    }

    /// Returns the number of open connections.
    pub(super) fn open(&self) -> usize {
        self.connections.len()
    }

    /// Adds a message.
    pub(super) fn add(&mut self, data: &Value) {
        self.waiting.push(Waiting {
            data: data.to_string(),
            frame: None,
            at: None,
        });
        self.deliver(Duration::MAX);
    }

    /// Delivers what has waited longer than the redelivery time, or was not delivered yet.
    pub(super) fn deliver(&mut self, redelivery: Duration) {
        for index in 0..self.waiting.len() {
            let is_due = self.waiting[index]
                .at
                .is_none_or(|at| at.elapsed() >= redelivery);
            if !is_due {
                continue;
            }
            self.turn += 1;
            let count = self.connections.len().max(1) as u64;
            let chosen = (self.turn % count) as usize;
            let Some((number, out)) = self.connections.iter().nth(chosen) else {
                return;
            };
            let id = format!("{number}-{}", self.turn);
            let frame = json!({
                "specVersion": "1.0", "type": "CALLBACK",
                "headers": {
                    "appId": "app", "connectionId": "cn", "contentType": "application/json",
                    "messageId": id, "time": "1763870000000", "topic": TOPIC,
                },
                "data": self.waiting[index].data,
            });
            if out.send(Out::Frame(frame)).is_ok() {
                self.waiting[index].frame = Some(id);
                self.waiting[index].at = Some(Instant::now());
            }
        }
    }

    /// Takes an acknowledgement. `false` if nothing waits for it.
    pub(super) fn acknowledge(&mut self, frame: &str) -> bool {
        let index = self
            .waiting
            .iter()
            .position(|waiting| waiting.frame.as_deref() == Some(frame));
        let Some(index) = index else {
            return false;
        };
        let waiting = self.waiting.remove(index);
        self.acknowledged
            .push(serde_json::from_str(&waiting.data).unwrap_or_default());
        true
    }

    /// Returns the ids of acknowledged messages in order.
    pub(super) fn acknowledged(&self) -> Vec<String> {
        let ids = self.acknowledged.iter();
        ids.filter_map(|data| data["msgId"].as_str().map(ToOwned::to_owned))
            .collect()
    }

    /// Returns the number of messages without acknowledgement.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Delivers the last acknowledged message again.
    pub(super) fn repeat_last(&mut self) {
        if let Some(data) = self.acknowledged.last().cloned() {
            self.add(&data);
        }
    }

    /// Sends the same command to every connection.
    pub(super) fn command(&self, command: impl Fn() -> Out) {
        for out in self.connections.values() {
            let _ = out.send(command());
        }
    }
}
