//! Decoding of received bytes as the listener does it, for fuzzers and property tests.

use chrono::{DateTime, Utc};

use super::events::{self, Decoded, Me};
use super::frames::{self, Frame};
use crate::platform::Event;

/// Decodes a frame of a Socket Mode connection.
pub(crate) fn decoded(bytes: &[u8], now: DateTime<Utc>) -> Vec<Event> {
    let me = Me {
        team: "T1".to_owned(),
        user: "UBOT".to_owned(),
        dm_threads: false,
    };
    let Frame::Envelope { kind, payload, .. } = frames::decode(&String::from_utf8_lossy(bytes))
    else {
        return Vec::new();
    };
    match events::decode(&kind, &payload, &me, now) {
        Decoded::Event(event) => vec![*event],
        Decoded::Ignored | Decoded::Broken(_) => Vec::new(),
    }
}
