//! Events of the streaming protocol, before and after they have a position in a log.

use bytes::Bytes;
use harness::runtime::encoding::to_bytes;
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

/// Event before it has a position.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Draft {
    pub(super) channel: Channel,
    pub(super) namespace: Namespace,
    /// JSON of the data.
    pub(super) data: Bytes,
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
        Self::of_json(channel, namespace, to_bytes(data))
    }

    /// Creates an event whose data is JSON already.
    pub(super) fn of_json(channel: Channel, namespace: Namespace, data: Bytes) -> Self {
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

/// Appends the JSON of a text, a number or a list of texts. These can always be serialized.
fn append(json: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    if let Err(error) = serde_json::to_writer(json, value) {
        tracing::error!(%error, "cannot serialize the head of an event");
    }
}

/// Position of an event, and what identifies it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Identity {
    /// Number of the event in its thread.
    pub(super) seq: u64,
    /// Text that is the same wherever the event is read.
    pub(super) event_id: String,
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
    pub(super) fn new(draft: Draft, identity: &Identity) -> Self {
        let mut json = Vec::with_capacity(HEAD_CAPACITY + draft.data.len());
        json.extend_from_slice(br#"{"type":"event","event_id":"#);
        append(&mut json, &identity.event_id);
        json.extend_from_slice(br#","seq":"#);
        append(&mut json, &identity.seq);
        json.extend_from_slice(br#","method":"#);
        append(&mut json, draft.channel.method());
        json.extend_from_slice(br#","params":{"namespace":"#);
        append(&mut json, &draft.namespace);
        json.extend_from_slice(br#","timestamp":"#);
        append(&mut json, &identity.timestamp);
        json.extend_from_slice(br#","data":"#);
        // The data is inserted as it is: a state can be large.
        json.extend_from_slice(&draft.data);
        json.extend_from_slice(b"}}");
        Self {
            seq: identity.seq,
            channel: draft.channel,
            namespace: draft.namespace,
            name: draft.name,
            json: json.into(),
        }
    }

    /// Returns the `method` of the event.
    pub(crate) fn method(&self) -> &'static str {
        self.channel.method()
    }
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
            event_id: "r1-1-3.0".to_owned(),
            timestamp: 12,
        };
        let event = LogEvent::new(draft, &identity);
        let read: Value = serde_json::from_slice(&event.json).expect("JSON");
        let expected = json!({
            "type": "event", "event_id": "r1-1-3.0", "seq": 7, "method": "input.requested",
            "params": { "namespace": ["tools:1"], "timestamp": 12, "data": { "a": [1] } }
        });
        assert_eq!(read, expected);
    }
}
