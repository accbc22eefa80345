//! Property tests with hostile updates and texts.

use chrono::DateTime;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::platform::{Event, EventBody, MAX_TEXT_BYTES};

use super::batch::decode_batch;
use super::me::Me;
use super::words::normalize;

/// Names that the decoder looks for.
const FIELDS: &[&str] = &[
    "message",
    "callback_query",
    "stopped_message_generation",
    "message_id",
    "chat",
    "id",
    "type",
    "from",
    "is_bot",
    "date",
    "text",
    "caption",
    "photo",
    "document",
    "file_id",
    "file_size",
    "width",
    "entities",
    "user",
    "reply_to_message",
    "message_thread_id",
    "is_topic_message",
    "migrate_to_chat_id",
    "data",
    "draft_id",
];

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-3_i64..50).prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        prop_oneof![
            "private",
            "supergroup",
            "channel",
            "@deer_bot x",
            "/new@deer_bot"
        ]
        .prop_map(Value::from),
    ]
}

fn hostile() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(6, 64, 8, |inner| {
        let field = proptest::sample::select(FIELDS);
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((field, inner), 0..8).prop_map(|fields| {
                let fields = fields
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value));
                Value::Object(fields.collect::<Map<_, _>>())
            }),
        ]
    })
}

fn me() -> Me {
    Me {
        id: 1,
        username: "deer_bot".to_owned(),
        reads_groups: true,
    }
}

fn is_sound(event: &Event) -> bool {
    let stored = serde_json::to_value(event).unwrap();
    let read: Event = serde_json::from_value(stored).unwrap();
    let is_short = match &event.body {
        EventBody::Message(message) => message.text.len() <= MAX_TEXT_BYTES,
        _ => true,
    };
    is_short && read == *event && !event.id.is_empty()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_update_is_decoded_or_reported(kind in 0..3_usize, content in hostile()) {
        let valid = json!({"update_id": 9, "message": {
            "message_id": 1, "chat": {"id": 42, "type": "private"},
            "from": {"id": 42}, "text": "valid",
        }});
        let mut update = json!({"update_id": 8});
        update[FIELDS[kind]] = content;
        let body = json!({"ok": true, "result": [update, valid]}).to_string();
        let batch = decode_batch(body.as_bytes(), &me(), DateTime::UNIX_EPOCH).unwrap();
        prop_assert_eq!(batch.next_offset, Some(10));
        prop_assert!(batch.events.iter().all(is_sound));
        prop_assert!(batch.events.len() + batch.malformed.len() <= 2);
        prop_assert!(!batch.events.is_empty());
    }

    #[test]
    fn any_bytes_are_a_batch_or_none(body in vec(any::<u8>(), 0..200)) {
        let _ = decode_batch(&body, &me(), DateTime::UNIX_EPOCH);
    }

    #[test]
    fn any_text_is_normalized_within_its_length(text in "[@/:, a-zéb_😀]{0,40}(@deer_bot)?.{0,9}") {
        if let Some(words) = normalize(&text, "deer_bot") {
            prop_assert!(words.text.len() <= text.len());
        }
    }
}
