//! Frames of a run's stream: a name and JSON.

use bytes::Bytes;
use serde::Serialize;
use serde_json::json;

use crate::stream_bridge::{EventData, EventName};
use deerflow_core::ids::{CheckpointId, RunId, ThreadId};

/// A frame before it gets an id.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// Name of the event.
    pub event: EventName,
    /// JSON of the event.
    pub data: EventData,
}

impl Frame {
    /// Creates a frame of `value`.
    pub fn new(event: impl Into<EventName>, value: &impl Serialize) -> Self {
        Self {
            event: event.into(),
            data: to_bytes(value).into(),
        }
    }
}

/// Serializes a value. Values of the runtime have only text keys and finite numbers, so this does
/// not fail for them. If a type of another crate fails, viewers get `null` and an error is logged.
pub fn to_bytes(value: &impl Serialize) -> Bytes {
    match serde_json::to_vec(value) {
        Ok(json) => json.into(),
        Err(error) => {
            tracing::error!(%error, "cannot serialize a value for the stream");
            Bytes::from_static(b"null")
        }
    }
}

/// Creates the first frame of an attempt. For later attempts it names the checkpoint that the run
/// resumes from, if there is one.
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

/// Creates the frame of a failed run. The web UI reads `name`, clients of LangGraph Platform read
/// `error`, and both read `message`.
pub fn error_frame(name: &str, message: &str) -> Frame {
    Frame::new(
        "error",
        &json!({ "error": name, "name": name, "message": message }),
    )
}
