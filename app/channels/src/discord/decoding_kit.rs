//! Decoding of received bytes as the listener does it, for fuzzers and property tests.

use chrono::{DateTime, Utc};

use super::decode::{self, View};
use super::places::Place;
use super::protocol::{self, Received};
use super::worker::interaction;
use crate::platform::Event;

/// Decodes a frame of the gateway.
pub(crate) fn decoded(bytes: &[u8], _now: DateTime<Utc>) -> Vec<Event> {
    let Ok(Received::Event(dispatch)) = protocol::decode(&String::from_utf8_lossy(bytes)) else {
        return Vec::new();
    };
    let place = Place::read(&dispatch.data, None);
    let view = View {
        bot: "1",
        thread_mode: dispatch.seq.is_multiple_of(2),
        place: &place,
    };
    let event = match dispatch.kind.as_str() {
        "MESSAGE_CREATE" => decode::message(&dispatch.data, view),
        "INTERACTION_CREATE" => interaction(&dispatch.data, view),
        _ => Ok(None),
    };
    event.ok().flatten().into_iter().collect()
}
