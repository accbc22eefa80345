//! Decoding of received bytes as the listener does it, for fuzzers and property tests.

use chrono::{DateTime, Utc};

use super::decode;
use super::frames::{self, Frame};
use crate::platform::Event;

/// Decodes a frame of stream mode.
pub(crate) fn decoded(bytes: &[u8], _now: DateTime<Utc>) -> Vec<Event> {
    match frames::decode(&String::from_utf8_lossy(bytes)) {
        Ok(Frame::Message { data, .. }) => {
            let event = decode::message(&data, "robot");
            event.ok().flatten().into_iter().collect()
        }
        _ => Vec::new(),
    }
}
