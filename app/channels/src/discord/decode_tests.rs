//! Tests of decoding.

use serde_json::{Value, json};

use super::*;
use crate::platform::MAX_TEXT_BYTES;

fn place(guild: bool) -> Place {
    Place {
        guild: guild.then(|| "1000".to_owned()),
        has_threads: guild,
        ..Place::default()
    }
}

fn view(place: &Place, thread_mode: bool) -> View<'_> {
    View {
        bot: "1",
        thread_mode,
        place,
    }
}

fn recorded() -> Value {
    json!({
        "id": "300", "channel_id": "20", "guild_id": "1000",
        "author": {"id": "7", "username": "a", "discriminator": "0", "avatar": null},
        "content": "<@1> hello", "timestamp": "2026-11-23T00:00:00+00:00", "tts": false,
        "mentions": [{"id": "1", "username": "bot", "bot": true}],
        "attachments": [], "embeds": [], "pinned": false, "type": 0,
    })
}

fn decoded(data: &Value) -> Option<Event> {
    message(data, view(&place(true), false)).unwrap()
}

fn text_of(event: &Event) -> &ChatMessage {
    match &event.body {
        EventBody::Message(message) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn mention_in_guild_is_addressed_and_stripped() {
    let event = decoded(&recorded()).unwrap();
    assert_eq!((event.id.as_str(), event.chat.id.as_str()), ("300", "20"));
    assert_eq!(event.workspace, "1000");
    assert_eq!(event.chat.kind, ChatKind::Group);
    assert_eq!(event.sender.name.as_deref(), Some("a"));
    assert_eq!(text_of(&event).text, "hello");
    assert!(text_of(&event).addressed);
    assert_eq!(event.at.to_rfc3339(), "2026-11-23T00:00:00+00:00");
}

#[test]
fn direct_message_is_addressed_without_mention() {
    let mut data = recorded();
    data["guild_id"] = Value::Null;
    data["content"] = json!("hi <@8>");
    data["mentions"] = json!([{"id": "8", "username": "bob"}]);
    let direct = message(&data, view(&place(false), true)).unwrap().unwrap();
    assert_eq!(direct.chat.kind, ChatKind::Direct);
    assert_eq!(direct.chat.id, "20");
    assert!(text_of(&direct).addressed);
    assert_eq!(text_of(&direct).text, "hi @bob");
}

#[test]
fn messages_of_programs_are_ignored() {
    let mut cases = vec![recorded(); 5];
    cases[0]["author"]["bot"] = json!(true);
    cases[1]["webhook_id"] = json!("9");
    cases[2]["type"] = json!(7);
    cases[3]["content"] = json!("");
    cases[4]["author"]["id"] = json!("1");
    for data in cases {
        assert_eq!(decoded(&data), None, "{data}");
    }
}

#[test]
fn thread_mode_names_the_thread_of_the_message() {
    let event = message(&recorded(), view(&place(true), true))
        .unwrap()
        .unwrap();
    assert_eq!(event.chat.id, "300");
    assert_eq!(event.chat.parent.as_deref(), Some("20"));
    assert_eq!(event.context["thread"], "deerflow-a-300");
    let mut thread = place(true);
    thread.has_threads = false;
    thread.parent = Some("20".to_owned());
    thread.owner = Some("1".to_owned());
    let mut data = recorded();
    data["channel_id"] = json!("300");
    data["mentions"] = json!([]);
    let inside = message(&data, view(&thread, true)).unwrap().unwrap();
    assert_eq!(inside.chat.id, "300");
    assert_eq!(inside.chat.parent.as_deref(), Some("20"));
    assert!(text_of(&inside).addressed);
    assert_eq!(inside.context.get("thread"), None);
}

#[test]
fn reply_to_the_bot_is_addressed() {
    let mut data = recorded();
    data["type"] = json!(19);
    data["mentions"] = json!([]);
    data["message_reference"] = json!({"message_id": "299"});
    data["referenced_message"] = json!({"id": "299", "author": {"id": "1"}});
    let event = decoded(&data).unwrap();
    assert_eq!(text_of(&event).reply_to.as_deref(), Some("299"));
    assert!(text_of(&event).addressed);
    data["referenced_message"] = Value::Null;
    assert!(!text_of(&decoded(&data).unwrap()).addressed);
}

#[test]
fn files_and_long_texts_are_bounded() {
    let mut data = recorded();
    data["content"] = json!("é".repeat(MAX_TEXT_BYTES));
    data["attachments"] = json!(vec![json!({"filename": "a", "size": 3, "url": "u"}); 30]);
    let event = decoded(&data).unwrap();
    assert!(text_of(&event).cut);
    assert!(text_of(&event).text.len() <= MAX_TEXT_BYTES);
    assert_eq!(text_of(&event).files.len(), MAX_FILES);
}

#[test]
fn hostile_messages_are_errors_and_never_panics() {
    let wrong = [
        json!(null),
        json!(7),
        json!({}),
        json!({"id": 300, "channel_id": "20"}),
        json!({"id": "300/../x", "channel_id": "20"}),
        json!({"id": "300", "channel_id": "../users"}),
        json!({"id": "300", "channel_id": "20", "author": []}),
        json!({"id": "9".repeat(400), "channel_id": "20", "author": {"id": "7"}}),
    ];
    let group = place(true);
    for data in wrong {
        assert!(message(&data, view(&group, true)).is_err(), "{data}");
    }
    let mut odd = recorded();
    for key in [
        "mentions",
        "attachments",
        "message_reference",
        "member",
        "timestamp",
    ] {
        odd[key] = json!({"a": [1]});
    }
    odd["id"] = json!("99999999999999999999");
    assert!(decoded(&odd).is_some());
}

#[test]
fn press_has_an_id_of_its_own_kind() {
    let data = json!({
        "id": "900", "type": 3, "token": "tok", "channel_id": "20", "guild_id": "1000",
        "member": {"user": {"id": "7", "username": "a"}},
        "data": {"custom_id": "yes", "component_type": 2}, "message": {"id": "500"},
    });
    let group = place(true);
    let event = press(&data, view(&group, false)).unwrap().unwrap();
    assert_eq!(event.id, "press:900");
    assert_eq!(event.sender.id, "7");
    assert_eq!(
        event.body,
        EventBody::Press(Press {
            data: "yes".to_owned(),
            message: Some("500".to_owned())
        })
    );
    assert_eq!(press(&json!({"type": 1}), view(&group, false)), Ok(None));
    assert!(press(&json!({"type": 3}), view(&group, false)).is_err());
}
