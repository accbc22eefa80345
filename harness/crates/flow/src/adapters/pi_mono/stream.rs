//! Parts that the streams of both transports share.

use deerflow_models::http::EventTooLong;
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;

use super::call::{CallFailure, MAX_ANSWER_BYTES};
use crate::adapter::{DeltaSink, TurnDelta};

/// Maximum size of an event stream, in bytes. A fragment of a few letters takes a few hundred.
const MAX_STREAM_BYTES: usize = 256 << 20;

/// Counts the bytes of an event stream.
#[derive(Debug, Default)]
pub(super) struct StreamSize(usize);

impl StreamSize {
    /// Adds received bytes.
    pub(super) fn add(&mut self, bytes: usize) -> Result<(), CallFailure> {
        self.0 = self.0.saturating_add(bytes);
        if self.0 <= MAX_STREAM_BYTES {
            return Ok(());
        }
        let limit = MAX_STREAM_BYTES >> 20;
        let message = format!("the event stream is larger than {limit} MiB");
        Err(CallFailure::TooLarge(message))
    }
}

impl From<EventTooLong> for CallFailure {
    fn from(_: EventTooLong) -> Self {
        let limit = MAX_ANSWER_BYTES >> 20;
        Self::TooLarge(format!("an event of the stream is larger than {limit} MiB"))
    }
}

/// Reports whether the body is JSON.
pub(super) fn is_json(response: &Response) -> bool {
    has_media_type(response, "application/json")
}

/// Reports whether the body is an event stream.
pub(super) fn is_event_stream(response: &Response) -> bool {
    has_media_type(response, "text/event-stream")
}

fn has_media_type(response: &Response, expected: &str) -> bool {
    let header = response.headers().get(CONTENT_TYPE);
    let value = header
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let media_type = value.split(';').next().unwrap_or_default().trim();
    media_type.eq_ignore_ascii_case(expected)
}

/// Emits a fragment, unless it is empty.
pub(super) fn emit(delta: TurnDelta, sink: &dyn DeltaSink) {
    if delta != TurnDelta::default() {
        sink.delta(delta);
    }
}
