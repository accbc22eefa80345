//! Events of the streaming protocol, before and after they have a position in a log.

use std::ops::Deref;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use harness::ids::RunId;
use serde::Serialize;

/// Kind of events that readers select.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channel {
    /// Whole states.
    Values,
    /// Updates of nodes.
    Updates,
    /// Messages in blocks.
    Messages,
    /// Starts and ends of tool calls.
    Tools,
    /// Starts and ends of runs and nested agents.
    Lifecycle,
    /// Questions to the user.
    Input,
    /// Positions of checkpoints.
    Checkpoints,
    /// Starts and ends of tasks. Readers may select it, but such events are not sent.
    Tasks,
    /// Payloads of tools.
    Custom,
}

impl Channel {
    /// All channels.
    pub(crate) const ALL: [Self; 9] = [
        Self::Values,
        Self::Updates,
        Self::Messages,
        Self::Tools,
        Self::Lifecycle,
        Self::Input,
        Self::Checkpoints,
        Self::Tasks,
        Self::Custom,
    ];

    /// Returns the name on the wire.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Values => "values",
            Self::Updates => "updates",
            Self::Messages => "messages",
            Self::Tools => "tools",
            Self::Lifecycle => "lifecycle",
            Self::Input => "input",
            Self::Checkpoints => "checkpoints",
            Self::Tasks => "tasks",
            Self::Custom => "custom",
        }
    }

    /// Returns the `method` of its events.
    fn method(self) -> &'static str {
        match self {
            Self::Input => "input.requested",
            other => other.as_str(),
        }
    }
}

/// Path of a nested agent: the `node:id` of the calls that lead to it, outermost first. Empty for
/// the agent of the run.
pub(crate) type Namespace = Vec<String>;

/// JSON of an event's data.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum DraftData {
    /// Part of a frame.
    OfFrame(Bytes),
    /// Written for the event.
    Own(Vec<u8>),
}

impl Deref for DraftData {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::OfFrame(json) => json,
            Self::Own(json) => json,
        }
    }
}

/// Event before it has a position.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Draft {
    pub(super) channel: Channel,
    pub(super) namespace: Namespace,
    /// JSON of the data.
    pub(super) data: DraftData,
    /// Status that the event reports about the agent at its namespace, and the name of that agent.
    pub(super) change: Option<StatusChange>,
    /// Name in the payload of a `custom` event.
    pub(super) name: Option<String>,
}

/// Status of an agent in a `lifecycle` event.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StatusChange {
    pub(super) status: &'static str,
    pub(super) graph: String,
}

impl Draft {
    /// Creates an event with `data`.
    pub(super) fn new(channel: Channel, namespace: Namespace, data: &impl Serialize) -> Self {
        let json = serde_json::to_vec(data).unwrap_or_else(|error| {
            tracing::error!(%error, "cannot serialize the data of an event");
            b"null".to_vec()
        });
        Self::with(channel, namespace, DraftData::Own(json))
    }

    /// Creates an event whose data is JSON already.
    pub(super) fn of_json(channel: Channel, namespace: Namespace, data: Bytes) -> Self {
        Self::with(channel, namespace, DraftData::OfFrame(data))
    }

    fn with(channel: Channel, namespace: Namespace, data: DraftData) -> Self {
        Self {
            channel,
            namespace,
            data,
            change: None,
            name: None,
        }
    }
}

/// Usual size of an event without its data, in bytes.
const HEAD_CAPACITY: usize = 192;
/// Size of the memory that small events share, in bytes. It is released with the last of them.
const BLOCK: usize = 4 * 1024;

/// Appends the JSON of a text, a number or a list of texts. These can always be serialized.
fn append(json: &mut BytesMut, value: &(impl Serialize + ?Sized)) {
    if let Err(error) = serde_json::to_writer(json.writer(), value) {
        tracing::error!(%error, "cannot serialize the head of an event");
    }
}

/// Text that identifies an event and is the same wherever it is read.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum EventKey {
    /// The run, and the number of its positions before the event.
    Place(Arc<RunId>, u64),
    /// Any other text.
    Text(String),
}

impl EventKey {
    /// Appends the JSON of the text. Ids of runs have no characters that JSON escapes.
    fn append_to(&self, json: &mut BytesMut) {
        match self {
            Self::Place(run, place) => {
                json.put_u8(b'"');
                json.extend_from_slice(run.as_str().as_bytes());
                json.put_u8(b'-');
                append(json, place);
                json.put_u8(b'"');
            }
            Self::Text(text) => append(json, text),
        }
    }
}

/// Position of an event, and what identifies it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Identity {
    /// Number of the event in its thread.
    pub(super) seq: u64,
    pub(super) event_id: EventKey,
    /// Time of the event, in milliseconds since 1970.
    pub(super) timestamp: i64,
}

/// Event of a log. Clones share its JSON.
#[derive(Debug, Clone)]
pub(crate) struct LogEvent {
    /// Number of the event in its thread, from 1.
    pub(crate) seq: u64,
    /// Channel of the event.
    pub(crate) channel: Channel,
    /// Agent that the event is about.
    pub(crate) namespace: Namespace,
    /// Name in the payload of a `custom` event.
    pub(crate) name: Option<String>,
    /// The whole event as JSON.
    pub(crate) json: Bytes,
}

impl LogEvent {
    /// Creates an event. Small events share memory with those that were written to `block` before.
    pub(super) fn new(draft: Draft, identity: &Identity, block: &mut BytesMut) -> Self {
        let size = HEAD_CAPACITY + draft.data.len();
        let json = if size > BLOCK / 4 {
            let mut json = BytesMut::with_capacity(size);
            write_json(&draft, identity, &mut json);
            json.freeze()
        } else {
            if block.capacity() < size {
                *block = BytesMut::with_capacity(BLOCK);
            }
            write_json(&draft, identity, block);
            block.split().freeze()
        };
        Self {
            seq: identity.seq,
            channel: draft.channel,
            namespace: draft.namespace,
            name: draft.name,
            json,
        }
    }

    /// Returns the `method` of the event.
    pub(crate) fn method(&self) -> &'static str {
        self.channel.method()
    }
}

fn write_json(draft: &Draft, identity: &Identity, json: &mut BytesMut) {
    json.extend_from_slice(br#"{"type":"event","event_id":"#);
    identity.event_id.append_to(json);
    json.extend_from_slice(br#","seq":"#);
    append(json, &identity.seq);
    json.extend_from_slice(br#","method":""#);
    json.extend_from_slice(draft.channel.method().as_bytes());
    json.extend_from_slice(br#"","params":{"namespace":"#);
    append(json, &draft.namespace);
    json.extend_from_slice(br#","timestamp":"#);
    append(json, &identity.timestamp);
    json.extend_from_slice(br#","data":"#);
    // The data is inserted as it is: a state can be large.
    json.extend_from_slice(&draft.data);
    json.extend_from_slice(b"}}");
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn event_has_the_documented_envelope() {
        let draft = Draft::new(
            Channel::Input,
            vec!["tools:1".to_owned()],
            &json!({ "a": [1] }),
        );
        let identity = Identity {
            seq: 7,
            event_id: EventKey::Place(Arc::new(RunId::parse("r1").expect("an id")), 6),
            timestamp: 12,
        };
        let event = LogEvent::new(draft, &identity, &mut BytesMut::new());
        let read: Value = serde_json::from_slice(&event.json).expect("JSON");
        let expected = json!({
            "type": "event", "event_id": "r1-6", "seq": 7, "method": "input.requested",
            "params": { "namespace": ["tools:1"], "timestamp": 12, "data": { "a": [1] } }
        });
        assert_eq!(read, expected);
    }

    #[test]
    fn events_of_any_size_follow_each_other_in_a_block() {
        let mut block = BytesMut::new();
        let sizes = [
            0,
            10,
            BLOCK / 8,
            BLOCK / 4,
            BLOCK,
            10,
            BLOCK / 8,
            BLOCK / 8,
            3 * BLOCK,
            1,
        ];
        let written: Vec<(String, LogEvent)> = (1..)
            .zip(sizes)
            .map(|(seq, size)| {
                let text = "x".repeat(size);
                let identity = Identity {
                    seq,
                    event_id: EventKey::Text(format!("e\"{seq}")),
                    timestamp: 0,
                };
                let draft = Draft::new(Channel::Custom, Vec::new(), &text);
                (text, LogEvent::new(draft, &identity, &mut block))
            })
            .collect();
        for (text, event) in written {
            let read: Value = serde_json::from_slice(&event.json).expect("JSON");
            assert_eq!(read["params"]["data"], text);
            assert_eq!(read["event_id"], format!("e\"{}", event.seq));
        }
    }
}
