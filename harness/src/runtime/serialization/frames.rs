//! Frames of a run's stream: a name and JSON.

use bytes::Bytes;
use serde::Serialize;
use serde_json::json;

use crate::ids::{CheckpointId, RunId, ThreadId};
use crate::runtime::stream_bridge::{EventData, EventName};

/// A frame before it has an id.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// The event's name.
    pub event: EventName,
    /// JSON.
    pub data: EventData,
}

impl Frame {
    /// A frame of `value`.
    pub fn new(event: impl Into<EventName>, value: &impl Serialize) -> Self {
        Self {
            event: event.into(),
            data: to_bytes(value).into(),
        }
    }
}

/// The JSON of a value. What the runtime serializes has only text keys and finite numbers, so it cannot fail; should a type
/// of a downstream crate fail, viewers get `null` and the log says so.
pub fn to_bytes(value: &impl Serialize) -> Bytes {
    match serde_json::to_vec(value) {
        Ok(json) => json.into(),
        Err(error) => {
            tracing::error!(%error, "a value cannot be serialized for the stream");
            Bytes::from_static(b"null")
        }
    }
}

/// The first frame of every attempt. A later one says which checkpoint it goes on from, if there is one.
pub fn metadata_frame(
    run_id: &RunId,
    thread_id: &ThreadId,
    attempt: u32,
    from: Option<&CheckpointId>,
) -> Frame {
    let mut data = json!({ "run_id": run_id, "thread_id": thread_id, "attempt": attempt });
    if let Some(from) = from {
        data["checkpoint_id"] = json!(from);
    }
    Frame::new("metadata", &data)
}

/// The frame of a failed run. The web UI reads `name`, the platform's clients `error`, both `message`.
pub fn error_frame(name: &str, message: &str) -> Frame {
    Frame::new(
        "error",
        &json!({ "error": name, "name": name, "message": message }),
    )
}
