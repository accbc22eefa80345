//! Tests of events.

use proptest::prelude::*;

use super::*;
use crate::platform::MAX_TEXT_BYTES;

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp_millis(1_770_000_000_000).unwrap()
}

fn decoded(value: &Value) -> Result<Option<Event>, String> {
    decode(value.to_string().as_bytes(), Some("ou_bot"), now())
}

fn message_event(changes: &Value) -> Value {
    let mut message = json!({
        "message_id": "om_1", "create_time": "1763870000000", "chat_id": "oc_1",
        "chat_type": "group", "message_type": "text", "content": "{\"text\":\"@_user_1 hello\"}",
        "mentions": [{"key": "@_user_1", "id": {"open_id": "ou_bot"}, "name": "Bot"}],
    });
    for (key, value) in changes.as_object().unwrap() {
        message[key] = value.clone();
    }
    json!({
        "schema": "2.0",
        "header": {"event_type": "im.message.receive_v1", "tenant_key": "t1"},
        "event": {
            "sender": {"sender_id": {"open_id": "ou_1"}, "sender_type": "user"},
            "message": message,
        },
    })
}

fn text_of(changes: &Value) -> (Event, ChatMessage) {
    let event = decoded(&message_event(changes)).unwrap().unwrap();
    match event.body.clone() {
        EventBody::Message(message) => (event, message),
        other => panic!("{other:?}"),
    }
}

#[test]
fn group_message_that_mentions_the_bot_is_addressed() {
    let (event, message) = text_of(&json!({"thread_id": "omt_1", "parent_id": "om_0"}));
    assert_eq!(
        (event.id.as_str(), event.workspace.as_str()),
        ("om_1", "t1")
    );
    assert_eq!(
        (event.chat.id.as_str(), event.chat.kind),
        ("oc_1", ChatKind::Group)
    );
    assert_eq!(event.sender.id, "ou_1");
    assert_eq!(event.at.timestamp_millis(), 1_763_870_000_000);
    assert_eq!(message.text, "hello");
    assert_eq!(message.topic.as_deref(), Some("omt_1"));
    assert_eq!(message.reply_to.as_deref(), Some("om_0"));
    assert!(message.addressed && !message.cut);
}

#[test]
fn group_message_without_mention_is_not_addressed() {
    let (_, message) = text_of(&json!({"mentions": null, "root_id": "om_r", "parent_id": "om_p"}));
    assert!(!message.addressed);
    assert_eq!(message.reply_to.as_deref(), Some("om_r"));
}

#[test]
fn direct_message_is_addressed_and_has_no_topic() {
    let (event, message) =
        text_of(&json!({"chat_type": "p2p", "mentions": [], "thread_id": "omt"}));
    assert_eq!(event.chat.kind, ChatKind::Direct);
    assert!(message.addressed && message.topic.is_none());
}

#[test]
fn long_text_is_cut_at_a_character() {
    let text = "ä".repeat(MAX_TEXT_BYTES);
    let content = json!({"text": format!("x{text}")}).to_string();
    let (_, message) = text_of(&json!({"content": content}));
    assert!(message.cut);
    assert_eq!(message.text.len(), MAX_TEXT_BYTES - 1);
}

#[test]
fn bots_and_other_events_are_ignored() {
    let mut event = message_event(&json!({}));
    event["event"]["sender"]["sender_type"] = json!("app");
    assert_eq!(decoded(&event), Ok(None));
    let other = json!({"header": {"event_type": "im.chat.updated_v1"}, "event": 5});
    assert_eq!(decoded(&other), Ok(None));
    let system = message_event(&json!({"message_type": "system"}));
    assert_eq!(decoded(&system), Ok(None));
}

#[test]
fn malformed_events_are_refused() {
    let nested = format!("{}{}", "[".repeat(65), "]".repeat(65));
    for payload in [nested.as_bytes(), b"", b"{", b"\xff\xfe", b"5", b"null"] {
        assert!(decode(payload, None, now()).is_err());
    }
    for changes in [
        json!({"message_id": 5}),
        json!({"message_id": "x".repeat(300)}),
        json!({"chat_id": null}),
        json!({"chat_type": {}}),
        json!({"content": {"text": "x"}}),
        json!({"content": "{"}),
        json!({"content": nested}),
        json!({"message_type": []}),
    ] {
        assert!(decoded(&message_event(&changes)).is_err(), "{changes}");
    }
    let (event, _) = text_of(&json!({"create_time": "99999999999999999999"}));
    assert_eq!(event.at, now());
    for time in [i64::MAX, i64::MIN, 0, 5_000_000_000_000] {
        let (event, _) = text_of(&json!({"create_time": time, "content": "{\"text\":7}"}));
        assert_eq!(event.at, now());
    }
}

#[test]
fn presses_of_both_forms_are_decoded() {
    let new = json!({
        "schema": "2.0",
        "header": {"event_type": "card.action.trigger", "tenant_key": "t1",
                   "create_time": "1763870000000000"},
        "event": {
            "operator": {"open_id": "ou_1"}, "token": "c-1",
            "action": {"tag": "button", "value": {"d": "stop:1", "k": "p2p"}},
            "context": {"open_message_id": "om_1", "open_chat_id": "oc_1"},
        },
    });
    let event = decoded(&new).unwrap().unwrap();
    assert_eq!(event.id, "press:c-1");
    assert_eq!(event.chat.kind, ChatKind::Direct);
    assert_eq!(event.at.timestamp_millis(), 1_763_870_000_000);
    let press = Press {
        data: "stop:1".to_owned(),
        message: Some("om_1".to_owned()),
    };
    assert_eq!(event.body, EventBody::Press(press));
    let old = |data: &str| {
        json!({
            "open_id": "ou_1", "open_message_id": "om_1", "open_chat_id": "oc_1",
            "tenant_key": "t1", "action": {"tag": "button", "value": {"d": data}},
        })
    };
    let first = decoded(&old("a")).unwrap().unwrap();
    assert_eq!(first.chat.kind, ChatKind::Group);
    assert_eq!(first.id, decoded(&old("a")).unwrap().unwrap().id);
    assert_ne!(first.id, decoded(&old("b")).unwrap().unwrap().id);
    assert!(decoded(&json!({"action": {"value": 5}})).is_err());
}

proptest! {
    #[test]
    fn any_json_is_decoded_or_refused(
        field in 0_usize..9,
        value in prop_oneof![
            Just(Value::Null), any::<i64>().prop_map(|number| json!(number)),
            ".{0,40}".prop_map(|text| json!(text)), Just(json!([])), Just(json!({"a": [1]})),
        ],
    ) {
        const FIELDS: [&str; 9] = [
            "message_id", "create_time", "chat_id", "chat_type", "message_type", "content",
            "mentions", "root_id", "thread_id",
        ];
        drop(decoded(&message_event(&json!({FIELDS[field]: value.clone()}))));
        drop(decoded(&value));
    }
}
