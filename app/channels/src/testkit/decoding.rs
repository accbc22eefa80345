//! Decoders of received input, for fuzzers and property tests.

use chrono::{DateTime, Utc};

use crate::platform::{Event, EventBody, MAX_TEXT_BYTES};
use crate::{dingtalk, discord, feishu, slack, telegram, wecom};

/// Number of platforms whose input [`decode_event`] decodes.
pub const PLATFORMS: usize = 6;
/// Maximum length of an id in bytes.
const MAX_ID: usize = 1_024;

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_763_870_000, 0).expect("a valid time")
}

/// Decodes received input of the platform with this number, in the order of the settings page, and
/// checks the events: a frame of its socket, the payload of a frame (Feishu), or the answer to a
/// poll (Telegram). Returns the number of events.
pub fn decode_event(platform: usize, bytes: &[u8]) -> usize {
    let decode = [
        telegram::decoding_kit::decoded,
        slack::decoding_kit::decoded,
        discord::decoding_kit::decoded,
        feishu::decoding_kit::decoded,
        dingtalk::decoding_kit::decoded,
        wecom::decoding_kit::decoded,
    ];
    check(&decode[platform % PLATFORMS](bytes, now()))
}

/// Decodes frames of Feishu, each behind its length in two bytes, and checks the events.
pub fn decode_feishu_frames(bytes: &[u8]) -> usize {
    check(&feishu::decoding_kit::frames(bytes, now()))
}

/// Checks what the core relies on.
fn check(events: &[Event]) -> usize {
    for event in events {
        let ids = [&event.id, &event.chat.id, &event.sender.id];
        for id in ids.into_iter().chain(&event.chat.parent) {
            assert!(!id.is_empty() && id.len() <= MAX_ID, "{event:?}");
        }
        assert!(event.workspace.len() <= MAX_ID, "{event:?}");
        if let EventBody::Message(message) = &event.body {
            assert!(message.text.len() <= MAX_TEXT_BYTES);
        }
        let stored = serde_json::to_string(event).expect("an event is JSON");
        let read: Event = serde_json::from_str(&stored).expect("an event can be read again");
        assert_eq!(read, *event);
    }
    events.len()
}
