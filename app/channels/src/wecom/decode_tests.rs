//! Decoding of valid and of hostile messages.

use super::*;
use crate::platform::MAX_TEXT_BYTES;

fn question() -> Question {
    Question {
        req_id: "REQ1".to_owned(),
        connection: "c".to_owned(),
    }
}

fn decode(body: Value) -> Result<Event, &'static str> {
    message(&body, &question(), DateTime::UNIX_EPOCH)
}

fn content(event: Event) -> ChatMessage {
    match event.body {
        EventBody::Message(message) => message,
        other => panic!("{other:?}"),
    }
}

fn direct(mut body: Value) -> Value {
    body["msgid"] = json!("CAIQ1");
    body["chattype"] = json!("single");
    body["from"] = json!({"userid": "zhangsan"});
    body
}

#[test]
fn recorded_message_becomes_an_event() {
    let event = decode(direct(json!({
        "aibotid": "AIB",
        "msgtype": "text",
        "text": {"content": "hello"},
    })))
    .unwrap();
    assert_eq!(event.id, "CAIQ1");
    assert_eq!(event.chat.id, "zhangsan");
    assert_eq!(event.chat.kind, ChatKind::Direct);
    assert_eq!(event.context, json!({"req_id": "REQ1", "connection": "c"}));
    let message = content(event);
    assert_eq!(message.text, "hello");
    assert!(message.addressed && !message.cut);
}

#[test]
fn group_message_loses_the_mention() {
    let mut body = direct(json!({
        "msgtype": "text",
        "text": {"content": "@Helper\u{2005}what is up @lisi"},
    }));
    body["chattype"] = json!("group");
    assert_eq!(decode(body.clone()), Err("chatid is missing"));
    body["chatid"] = json!("wr1");
    let event = decode(body).unwrap();
    assert_eq!(event.chat.id, "wr1");
    assert_eq!(event.sender.id, "zhangsan");
    assert_eq!(content(event).text, "what is up @lisi");
}

#[test]
fn mixed_message_has_texts_and_files() {
    let body = direct(json!({
        "msgtype": "mixed",
        "mixed": {"msg_item": [
            {"msgtype": "text", "text": {"content": "look"}},
            {"msgtype": "image", "image": {"url": "https://a/1", "aeskey": "k"}},
            {"msgtype": "mixed", "mixed": {"msg_item": []}},
            {"msgtype": "text", "text": {"content": "here"}},
        ]},
        "quote": {"msgtype": "file", "file": {"url": "https://a/2", "filename": "a.pdf"}},
    }));
    let message = content(decode(body).unwrap());
    assert_eq!(message.text, "look\nhere");
    let names: Vec<_> = message
        .files
        .iter()
        .map(|file| file.name.clone().unwrap())
        .collect();
    assert_eq!(names, ["image-1.jpg", "a.pdf"]);
    assert_eq!(
        message.files[0].reference,
        json!({"url": "https://a/1", "aeskey": "k"})
    );
}

#[test]
fn quoted_text_precedes_the_text_unless_it_is_a_command() {
    let with = |text: &str| {
        direct(json!({
            "msgtype": "text",
            "text": {"content": text},
            "quote": {"msgtype": "text", "text": {"content": "a\nb"}},
        }))
    };
    assert_eq!(
        content(decode(with("why?")).unwrap()).text,
        "> a\n> b\n\nwhy?"
    );
    assert_eq!(content(decode(with("/new")).unwrap()).text, "/new");
}

#[test]
fn hostile_messages_are_errors_or_cut() {
    for body in [
        Value::Null,
        json!([]),
        json!({"msgid": 1}),
        json!({"msgid": "a", "from": "b"}),
        json!({"msgid": "a", "from": {"userid": ["b"]}}),
        json!({"msgid": "x".repeat(300), "from": {"userid": "b"}}),
        direct(json!({"msgtype": "text", "text": {"content": 1}})),
        direct(json!({"msgtype": "location"})),
        direct(json!({"msgtype": "mixed", "mixed": {"msg_item": {}}})),
        direct(json!({"msgtype": "image", "image": {"url": "x".repeat(10_000)}})),
    ] {
        assert!(decode(body.clone()).is_err(), "{body}");
    }
    let long = direct(json!({"msgtype": "text", "text": {"content": "é".repeat(40_000)}}));
    let message = content(decode(long).unwrap());
    assert!(message.cut && message.text.len() == MAX_TEXT_BYTES);
    let odd =
        direct(json!({"msgtype": "voice", "voice": {"content": "a"}, "create_time": i64::MAX}));
    assert_eq!(decode(odd).unwrap().at, DateTime::UNIX_EPOCH);
    let images = vec![json!({"msgtype": "image", "image": {"url": "https://a"}}); 100];
    let many = direct(json!({"msgtype": "mixed", "mixed": {"msg_item": images}}));
    assert_eq!(content(decode(many).unwrap()).files.len(), MAX_FILES);
}
