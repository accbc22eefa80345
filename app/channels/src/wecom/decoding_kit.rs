//! Decoding of received bytes as the listener does it, for fuzzers and property tests.

use chrono::{DateTime, Utc};

use super::decode;
use super::frame::{self, Received};
use super::route::Question;
use crate::platform::Event;

/// Decodes a frame of the long connection.
pub(crate) fn decoded(bytes: &[u8], now: DateTime<Utc>) -> Vec<Event> {
    let Ok(Received::Message { req_id, body }) = frame::parse(&String::from_utf8_lossy(bytes))
    else {
        return Vec::new();
    };
    let question = Question {
        req_id,
        connection: "c".to_owned(),
    };
    decode::message(&body, &question, now).into_iter().collect()
}
