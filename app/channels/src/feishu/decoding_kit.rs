//! Decoding of received bytes as the listener does it, for fuzzers and property tests.

use chrono::{DateTime, Utc};
use prost::Message;
use tokio::time::Instant;

use super::decode::decode;
use super::frame::FeishuFrame;
use super::parts::{Joined, MAX_JOINED_BYTES, PartBuffer};
use crate::platform::Event;

/// Decodes the payload of a data frame.
pub(crate) fn decoded(bytes: &[u8], now: DateTime<Utc>) -> Vec<Event> {
    let event = decode(bytes, Some("ou_bot"), now);
    event.ok().flatten().into_iter().collect()
}

/// Decodes frames that follow each other, each behind its length in two bytes, joins their parts,
/// and decodes what is complete. A frame keeps its content when it is encoded.
pub(crate) fn frames(mut bytes: &[u8], now: DateTime<Utc>) -> Vec<Event> {
    let (mut buffer, at) = (PartBuffer::default(), Instant::now());
    let mut events = Vec::new();
    while let Some((length, rest)) = bytes.split_at_checked(2) {
        let length = usize::from(u16::from_le_bytes([length[0], length[1]])).min(rest.len());
        let (frame, rest) = rest.split_at(length);
        bytes = rest;
        let Ok(frame) = FeishuFrame::decode(frame) else {
            continue;
        };
        assert_eq!(FeishuFrame::decode(frame.bytes()).as_ref(), Ok(&frame));
        let (sum, seq) = (frame.number("sum"), frame.number("seq"));
        let id = frame.header("message_id").unwrap_or_default();
        let payload = frame.payload.clone().unwrap_or_default();
        let joined = buffer.add(id, sum.unwrap_or(1), seq.unwrap_or(0), payload, at);
        if let Joined::Complete(payload) = joined {
            assert!(payload.len() <= MAX_JOINED_BYTES);
            events.extend(decoded(&payload, now));
        }
        let ack = frame.into_ack(200, std::time::Duration::ZERO);
        assert_eq!(FeishuFrame::decode(ack.bytes()).as_ref(), Ok(&ack));
    }
    events
}
