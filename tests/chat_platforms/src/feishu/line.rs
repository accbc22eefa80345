//! Long connections: delivery of events, redelivery, and the check of acknowledgements.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::time::Instant;

use prost::Message as _;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::UnboundedSender;

use super::frames::{DATA, FeishuFrame, check_ack, frame};
use super::options::FeishuOptions;

/// Message to the task of a connection.
#[derive(Debug)]
pub(super) enum Outbound {
    Bytes(Vec<u8>),
    /// Sends a close frame.
    Close,
    /// Ends the connection without a close frame.
    Cut,
}

/// Refused WebSocket handshake.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FeishuRefusedHandshake {
    /// Header `handshake-status`.
    pub status: u32,
    /// Header `handshake-msg`.
    pub message: String,
    /// Header `handshake-autherrcode`.
    pub auth_code: Option<u64>,
}

/// Acknowledgement of an event.
#[derive(Debug, Clone, Serialize)]
pub struct FeishuAck {
    /// Header `message_id` of the event.
    pub event: String,
    /// Code of the payload.
    pub code: i64,
    /// Milliseconds since the delivery.
    pub after_ms: u64,
}

/// Open connection.
#[derive(Debug)]
pub(super) struct FeishuConnection {
    pub(super) id: u64,
    pub(super) sender: UnboundedSender<Outbound>,
}

#[derive(Debug)]
struct PendingEvent {
    kind: String,
    payload: Vec<u8>,
    /// Deliveries so far.
    deliveries: usize,
    due: Instant,
}

#[derive(Debug)]
struct Delivered {
    event: String,
    last: FeishuFrame,
    at: Instant,
}

/// State of all connections.
#[derive(Debug, Default)]
pub(super) struct FeishuLine {
    pub(super) connections: Vec<FeishuConnection>,
    pub(super) opened: u64,
    pub(super) acks: Vec<FeishuAck>,
    /// Violations of the protocol by the client.
    pub(super) violations: Vec<String>,
    /// Codes of close frames, `None` for connections that ended without one.
    pub(super) closes: Vec<Option<u16>>,
    pub(super) refusals: VecDeque<FeishuRefusedHandshake>,
    pub(super) mute: bool,
    events: BTreeMap<String, PendingEvent>,
    delivered: HashMap<u64, Delivered>,
    acked: HashSet<u64>,
    next_seq: u64,
}

impl FeishuLine {
    /// Queues an event.
    pub(super) fn push(&mut self, event: String, kind: &str, payload: Vec<u8>, now: Instant) {
        let pending = PendingEvent {
            kind: kind.to_owned(),
            payload,
            deliveries: 0,
            due: now,
        };
        self.events.insert(event, pending);
    }

    /// Returns the number of events that are not acknowledged.
    pub(super) fn unacknowledged(&self) -> usize {
        self.events.len()
    }

    /// Delivers what is due to random connections and returns the next time at which an event is
    /// due.
    pub(super) fn deliver(
        &mut self,
        service: i32,
        options: &FeishuOptions,
        now: Instant,
    ) -> Option<Instant> {
        if self.connections.is_empty() {
            return None;
        }
        let due: Vec<String> = self
            .events
            .iter()
            .filter(|(_, event)| event.due <= now)
            .map(|(id, _)| id.clone())
            .collect();
        for id in due {
            self.deliver_one(&id, service, options, now);
        }
        self.events.values().map(|event| event.due).min()
    }

    fn deliver_one(&mut self, id: &str, service: i32, options: &FeishuOptions, now: Instant) {
        let Some(event) = self.events.get_mut(id) else {
            return;
        };
        if event.deliveries > options.redelivery.len() {
            self.events.remove(id);
            return;
        }
        let delay = options.redelivery.get(event.deliveries);
        event.due = now + delay.copied().unwrap_or_default();
        event.deliveries += 1;
        let parts: Vec<&[u8]> = event.payload.chunks(options.part_bytes.max(1)).collect();
        let chosen = rand::random::<u32>() as usize % self.connections.len();
        let sender = &self.connections[chosen].sender;
        for (seq, part) in parts.iter().enumerate() {
            self.next_seq += 1;
            let headers = [
                ("type", event.kind.clone()),
                ("message_id", id.to_owned()),
                ("trace_id", format!("tr-{id}")),
                ("sum", parts.len().to_string()),
                ("seq", seq.to_string()),
            ];
            let ids = (self.next_seq, 12);
            let frame = frame(DATA, service, ids, &headers, part.to_vec());
            // The receiver of a dead connection is gone; the event is lost until its redelivery.
            let _ = sender.send(Outbound::Bytes(frame.encode_to_vec()));
            if seq + 1 == parts.len() {
                let delivered = Delivered {
                    event: id.to_owned(),
                    last: frame,
                    at: now,
                };
                self.delivered.insert(self.next_seq, delivered);
            }
        }
    }

    /// Checks an acknowledgement.
    pub(super) fn acknowledge(&mut self, ack: &FeishuFrame, now: Instant) {
        let Some(delivered) = self.delivered.get(&ack.seq_id) else {
            let text = format!("acknowledged frame {} is no last frame", ack.seq_id);
            self.violations.push(text);
            return;
        };
        if !self.acked.insert(ack.seq_id) {
            let text = format!("frame {} was acknowledged twice", ack.seq_id);
            self.violations.push(text);
            return;
        }
        match check_ack(&delivered.last, ack) {
            Ok(code) => {
                if code == 200 {
                    self.events.remove(&delivered.event);
                }
                self.acks.push(FeishuAck {
                    event: delivered.event.clone(),
                    code,
                    after_ms: now.duration_since(delivered.at).as_millis() as u64,
                });
            }
            Err(text) => self.violations.push(text),
        }
    }
}
