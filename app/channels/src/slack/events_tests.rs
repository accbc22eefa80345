//! Tests of the decoding of events.

use chrono::DateTime;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Decoded, Me};
use crate::platform::{ChatKind, ChatMessage, Event, EventBody, MAX_TEXT_BYTES};

fn me() -> Me {
    Me {
        team: "T1".to_owned(),
        user: "UBOT".to_owned(),
        dm_threads: false,
    }
}

fn decode(kind: &str, payload: &Value, me: &Me) -> Decoded {
    super::decode(kind, payload, me, DateTime::UNIX_EPOCH)
}

fn with(changes: Value) -> Value {
    let mut event = json!({
        "type": "app_mention", "user": "U1", "text": "<@UBOT> hello",
        "ts": "1763870000.000100", "channel": "C1",
    });
    for (name, value) in changes.as_object().into_iter().flatten() {
        event[name] = value.clone();
    }
    json!({"type": "event_callback", "team_id": "T1", "event": event})
}

fn event(changes: Value) -> Event {
    match decode("events_api", &with(changes), &me()) {
        Decoded::Event(event) => *event,
        other => panic!("{other:?}"),
    }
}

fn message(changes: Value) -> ChatMessage {
    match event(changes).body {
        EventBody::Message(message) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn mention_becomes_an_addressed_message() {
    let event = event(json!({}));
    assert_eq!(event.id, "1763870000.000100");
    assert_eq!(
        (event.workspace.as_str(), event.chat.id.as_str()),
        ("T1", "C1")
    );
    assert_eq!(event.chat.kind, ChatKind::Group);
    assert_eq!(event.at.timestamp_micros(), 1_763_870_000_000_100);
    assert_eq!(
        event.context,
        json!({"team": "T1", "thread": "1763870000.000100"})
    );
    let EventBody::Message(message) = event.body else {
        panic!("not a message");
    };
    assert_eq!(message.text, "hello");
    assert_eq!(message.topic.as_deref(), Some("1763870000.000100"));
    assert!(message.addressed && message.reply_to.is_none());
}

#[test]
fn message_and_mention_of_one_timestamp_are_the_same_event() {
    let mention = event(json!({}));
    let message = event(json!({"type": "message", "channel_type": "channel"}));
    assert_eq!(mention, message);
}

#[test]
fn thread_reply_belongs_to_the_topic_of_its_thread() {
    let reply =
        json!({"type": "message", "text": "more &amp; more", "thread_ts": "1763860000.000001"});
    let reply = message(reply);
    assert_eq!(reply.topic.as_deref(), Some("1763860000.000001"));
    assert_eq!(reply.reply_to.as_deref(), Some("1763860000.000001"));
    assert_eq!(reply.text, "more & more");
    assert!(!reply.addressed);
    let to_bot =
        json!({"type": "message", "text": "x", "thread_ts": "1.1", "parent_user_id": "UBOT"});
    assert!(message(to_bot).addressed);
}

#[test]
fn direct_message_has_a_topic_only_with_dm_threads() {
    let changes = json!({"type": "message", "channel": "D1", "channel_type": "im", "text": "hi"});
    let direct = message(changes.clone());
    assert!(direct.addressed && direct.topic.is_none());
    let me = Me {
        dm_threads: true,
        ..me()
    };
    let Decoded::Event(event) = decode("events_api", &with(changes), &me) else {
        panic!("not an event");
    };
    assert_eq!(event.chat.kind, ChatKind::Direct);
    let EventBody::Message(message) = event.body else {
        panic!("not a message");
    };
    assert_eq!(message.topic.as_deref(), Some("1763870000.000100"));
}

#[test]
fn bots_and_subtypes_are_ignored() {
    for changes in [
        json!({"bot_id": "B2"}),
        json!({"user": "UBOT"}),
        json!({"user": "USLACKBOT"}),
        json!({"subtype": "message_changed"}),
        json!({"subtype": "bot_message"}),
        json!({"hidden": true}),
        json!({"text": "<@UBOT> "}),
        json!({"text": 7}),
        json!({"type": "reaction_added"}),
    ] {
        assert_eq!(
            decode("events_api", &with(changes.clone()), &me()),
            Decoded::Ignored,
            "{changes}"
        );
    }
    for subtype in ["file_share", "thread_broadcast"] {
        assert_eq!(message(json!({"subtype": subtype})).text, "hello");
    }
}

#[test]
fn hostile_events_are_broken() {
    let deep = "1".repeat(500);
    for changes in [
        json!({"type": null}),
        json!({"user": null}),
        json!({"user": ["U1"]}),
        json!({"user": "U1/../x"}),
        json!({"channel": 5}),
        json!({"channel": "C".repeat(65)}),
        json!({"ts": 1763870000.0001}),
        json!({"ts": "999999999999999999.1"}),
        json!({"ts": format!("{deep}.1")}),
    ] {
        let decoded = decode("events_api", &with(changes.clone()), &me());
        assert!(matches!(decoded, Decoded::Broken(_)), "{changes}");
    }
    for payload in [
        Value::Null,
        json!([]),
        json!({"event": "x"}),
        json!({"event": {}}),
    ] {
        assert!(matches!(
            decode("events_api", &payload, &me()),
            Decoded::Broken(_)
        ));
        assert!(matches!(
            decode("interactive", &payload, &me()),
            Decoded::Broken(_)
        ));
        assert!(matches!(
            decode("slash_commands", &payload, &me()),
            Decoded::Broken(_)
        ));
        assert_eq!(decode("options", &payload, &me()), Decoded::Ignored);
    }
}

#[test]
fn long_text_is_cut_at_a_character() {
    let text = "é".repeat(MAX_TEXT_BYTES);
    let message = message(json!({"text": text}));
    assert!(message.cut && message.text.len() <= MAX_TEXT_BYTES);
}

#[test]
fn files_have_references_for_the_download() {
    let files = json!([
        {"id": "F1", "name": "a.txt", "mimetype": "text/plain", "size": 5,
         "url_private_download": "https://files.slack.com/a"},
        {"id": "F2", "file_access": "check_file_info", "size": -1},
        {"name": "without id"},
        7,
    ]);
    let message = message(json!({"text": "", "subtype": "file_share", "files": files}));
    assert_eq!(message.files.len(), 2);
    assert_eq!(message.files[0].name.as_deref(), Some("a.txt"));
    assert_eq!(message.files[0].size, Some(5));
    assert_eq!(
        message.files[0].reference,
        json!({"id": "F1", "url": "https://files.slack.com/a"})
    );
    assert_eq!(message.files[1].reference, json!({"id": "F2", "url": null}));
}

#[test]
fn press_names_its_message_and_thread() {
    let payload = json!({
        "type": "block_actions", "user": {"id": "U1"}, "team": {"id": "T1"}, "channel": {"id": "C1"},
        "container": {"message_ts": "2.1", "channel_id": "C1", "thread_ts": "1.1"},
        "message": {"ts": "2.1", "thread_ts": "1.1"},
        "actions": [{"type": "button", "value": "yes", "action_ts": "3.5"}],
    });
    let Decoded::Event(event) = decode("interactive", &payload, &me()) else {
        panic!("not an event");
    };
    assert_eq!(event.id, "press:3.5:U1");
    assert_eq!(event.context, json!({"team": "T1", "thread": "1.1"}));
    let EventBody::Press(press) = event.body else {
        panic!("not a press");
    };
    assert_eq!(
        (press.data.as_str(), press.message.as_deref()),
        ("yes", Some("2.1"))
    );
}

#[test]
fn slash_command_becomes_an_addressed_message() {
    let payload = json!({
        "command": "/connect", "text": "a&amp;b ", "user_id": "U1", "channel_id": "D1",
        "team_id": "T1", "trigger_id": "1.2.ab",
    });
    let Decoded::Event(event) = decode("slash_commands", &payload, &me()) else {
        panic!("not an event");
    };
    assert_eq!(
        (event.id.as_str(), event.chat.kind),
        ("command:1.2.ab", ChatKind::Direct)
    );
    let EventBody::Message(message) = event.body else {
        panic!("not a message");
    };
    assert_eq!(message.text, "/connect a&b");
    assert!(message.addressed && message.topic.is_none());
}

/// Returns arbitrary JSON whose keys and texts are often those of Slack.
fn arbitrary_json() -> impl Strategy<Value = Value> {
    let words = prop::sample::select(vec![
        "type",
        "event",
        "message",
        "block_actions",
        "user",
        "id",
        "ts",
        "1.1",
        "channel",
        "C1",
        "U1",
        "text",
        "<@UBOT>",
        "<",
        "&",
        "files",
        "actions",
        "value",
        "action_ts",
        "thread_ts",
        "container",
        "message_ts",
        "events_api",
        "envelope_id",
        "payload",
        "size",
        "url_private",
    ]);
    let text = prop_oneof![words.clone().prop_map(str::to_owned), any::<String>()];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(text.clone(), inner, 0..8)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn arbitrary_json_never_panics(value in arbitrary_json()) {
        for kind in ["events_api", "interactive", "slash_commands"] {
            decode(kind, &value, &me());
        }
        super::message(&value, "T1", "C1", &me());
        crate::slack::frames::decode(&value.to_string());
    }

    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        crate::slack::frames::decode(&text);
        crate::slack::text::unescape(&text);
        crate::slack::text::without_leading_mention(&text, "UBOT");
        crate::slack::live::visible(&text, 10);
    }
}
