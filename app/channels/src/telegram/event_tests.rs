//! Tests of the decoding of updates.

use super::*;

fn me() -> Me {
    Me {
        id: 1,
        username: "deer_bot".to_owned(),
        reads_groups: false,
    }
}

fn decoded(update: &Value) -> Result<Option<Event>, DecodeError> {
    decode(update, &me(), DateTime::UNIX_EPOCH)
}

fn message_with(chat: i64, more: Value) -> Value {
    let kind = if chat > 0 { "private" } else { "supergroup" };
    let mut message = json!({
        "message_id": 7, "date": 1_763_870_000, "chat": {"id": chat, "type": kind},
        "from": {"id": 42, "is_bot": false, "first_name": "A", "last_name": "B"},
    });
    for (field, value) in more.as_object().unwrap() {
        message[field] = value.clone();
    }
    json!({"update_id": 100, "message": message})
}

fn content_of(update: &Value) -> ChatMessage {
    match decoded(update).unwrap().unwrap().body {
        EventBody::Message(message) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn recorded_updates_are_decoded() {
    let event = decoded(&json!({"update_id": 100, "message": {
        "message_id": 7, "date": 1_763_870_000,
        "chat": {"id": 42, "type": "private", "first_name": "A"},
        "from": {"id": 42, "is_bot": false, "first_name": "A", "username": "a"},
        "text": "hello",
    }}))
    .unwrap()
    .unwrap();
    assert_eq!(event.id, "7");
    assert_eq!(event.chat.id, "42");
    assert_eq!(event.chat.kind, ChatKind::Direct);
    assert_eq!(event.sender.name.as_deref(), Some("A"));
    assert_eq!(event.at.timestamp(), 1_763_870_000);

    let content = content_of(&json!({"update_id": 101, "message": {
        "message_id": 8, "date": 1_763_870_001,
        "chat": {"id": -1001, "type": "supergroup", "title": "G", "is_forum": true},
        "message_thread_id": 5, "is_topic_message": true,
        "from": {"id": 42, "is_bot": false, "first_name": "A"},
        "text": "@deer_bot hi", "entities": [{"type": "mention", "offset": 0, "length": 9}],
    }}));
    assert_eq!(content.text, "hi");
    assert_eq!(content.topic.as_deref(), Some("5"));
    assert!(content.addressed);
}

#[test]
fn group_message_is_addressed_by_name_id_reply_or_command() {
    for (more, addressed) in [
        (json!({"text": "hi"}), false),
        (json!({"text": "hi @deer_bot"}), true),
        (json!({"text": "/new"}), true),
        (
            json!({"text": "hi", "entities": [{"type": "text_mention", "user": {"id": 1}}]}),
            true,
        ),
        (
            json!({"text": "hi", "reply_to_message": {"message_id": 3, "from": {"id": 1}}}),
            true,
        ),
        (
            json!({"text": "hi", "reply_to_message": {"message_id": 3, "from": {"id": 9}}}),
            false,
        ),
        (
            json!({"text": "hi", "message_thread_id": 5, "is_topic_message": true,
                "reply_to_message": {"message_id": 5, "from": {"id": 1}, "forum_topic_created": {}}}),
            false,
        ),
    ] {
        let content = content_of(&message_with(-1001, more.clone()));
        assert_eq!(content.addressed, addressed, "{more}");
    }
}

#[test]
fn reply_chain_of_a_supergroup_is_no_topic() {
    let content = content_of(&message_with(
        -1001,
        json!({"text": "hi", "message_thread_id": 3, "reply_to_message": {"message_id": 3}}),
    ));
    assert_eq!(content.topic, None);
    assert_eq!(content.reply_to.as_deref(), Some("3"));
    let in_topic = content_of(&message_with(
        -1001,
        json!({"text": "hi", "message_thread_id": 5, "is_topic_message": true,
            "reply_to_message": {"message_id": 5, "forum_topic_created": {}}}),
    ));
    assert_eq!(in_topic.reply_to, None);
}

#[test]
fn files_become_references_and_captions_text() {
    let content = content_of(&message_with(
        42,
        json!({
            "caption": "look", "media_group_id": "g1",
            "photo": [
                {"file_id": "s", "width": 90, "height": 90, "file_size": 5},
                {"file_id": "l", "width": 800, "height": 600, "file_size": 9},
                {"file_id": "m", "width": 300, "height": 300},
            ],
        }),
    ));
    assert_eq!(content.text, "look");
    assert_eq!(content.album.as_deref(), Some("g1"));
    assert_eq!(content.files.len(), 1);
    assert_eq!(content.files[0].reference, json!({"file_id": "l"}));
    assert_eq!(content.files[0].size, Some(9));
    let content = content_of(&message_with(
        42,
        json!({"document": {"file_id": "d", "file_name": "a.pdf", "mime_type": "application/pdf"}}),
    ));
    assert_eq!(content.files[0].name.as_deref(), Some("a.pdf"));
    let content = content_of(&message_with(42, json!({"voice": {"file_id": "v"}})));
    assert_eq!(content.files[0].media_type.as_deref(), Some("audio/ogg"));
}

#[test]
fn bots_channels_and_service_messages_are_ignored() {
    for update in [
        message_with(
            -1001,
            json!({"text": "x", "from": {"id": 5, "is_bot": true}}),
        ),
        message_with(
            -1001,
            json!({"text": "x", "chat": {"id": -1001, "type": "channel"}}),
        ),
        message_with(-1001, json!({"new_chat_members": [{"id": 1}]})),
        message_with(-1001, json!({"text": "/new@other_bot"})),
        message_with(-1001, json!({"text": "x", "from": null})),
        message_with(-1001, json!({"photo": [], "document": {"file_id": 5}})),
        json!({"update_id": 1, "callback_query": {"id": "q", "from": {"id": 4}, "data": "d"}}),
    ] {
        assert_eq!(decoded(&update), Ok(None), "{update}");
    }
}

#[test]
fn press_with_empty_or_long_id_is_refused() {
    let press = |id: String| {
        decoded(&json!({"update_id": 1, "callback_query": {
            "id": id, "from": {"id": 4, "is_bot": false}, "data": "yes",
            "message": {"message_id": 9, "chat": {"id": -5, "type": "group"}},
        }}))
    };
    assert!(matches!(press("7".repeat(256)), Ok(Some(_))));
    for id in [String::new(), "7".repeat(257)] {
        assert_eq!(press(id), Err(DecodeError::Field("id")));
    }
}

#[test]
fn press_stop_and_migration_are_events() {
    let press = decoded(&json!({"update_id": 1, "callback_query": {
        "id": "77", "from": {"id": 4, "is_bot": false}, "data": "yes",
        "message": {"message_id": 9, "chat": {"id": -5, "type": "group"}},
    }}))
    .unwrap()
    .unwrap();
    assert_eq!(press.id, "press:77");
    assert_eq!(press.context, json!({"callback": "77"}));
    assert_eq!(press.sender.id, "4");
    assert_eq!(
        press.body,
        EventBody::Press(Press {
            data: "yes".to_owned(),
            message: Some("9".to_owned())
        })
    );

    let stop = decoded(&json!({"update_id": 12, "stopped_message_generation": {
        "chat": {"id": 42, "type": "private"}, "draft_id": 3, "message_thread_id": 6,
    }}))
    .unwrap()
    .unwrap();
    assert_eq!(
        (stop.id.as_str(), stop.sender.id.as_str()),
        ("stop:12", "42")
    );
    let topic = Some("6".to_owned());
    assert_eq!(stop.body, EventBody::Stop { topic });

    let renamed = decoded(&message_with(-5, json!({"migrate_to_chat_id": -1007})));
    let renamed = renamed.unwrap().unwrap();
    assert_eq!(renamed.id, "renamed:7");
    let to = "-1007".to_owned();
    assert_eq!(renamed.body, EventBody::Renamed { to });
}
