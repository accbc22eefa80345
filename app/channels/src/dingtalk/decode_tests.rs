//! Tests of decoding.

use super::*;
use crate::platform::MAX_TEXT_BYTES;

fn recorded() -> Value {
    json!({
        "conversationId": "cid1", "atUsers": [{"dingtalkId": "$:x"}], "chatbotCorpId": "corp",
        "chatbotUserId": "$:bot", "msgId": "msgA==", "senderNick": "A", "isAdmin": true,
        "senderStaffId": "u1", "sessionWebhookExpiredTime": 1_763_875_400_000_u64,
        "createAt": 1_763_870_000_000_u64, "senderCorpId": "corp", "conversationType": "1",
        "senderId": "$:s", "text": {"content": " hello"}, "robotCode": "client",
        "msgtype": "text",
    })
}

fn decoded(data: &Value) -> Event {
    message(data, "client").unwrap().unwrap()
}

fn body(event: &Event) -> &ChatMessage {
    match &event.body {
        EventBody::Message(message) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn recorded_message_is_decoded() {
    let event = decoded(&recorded());
    assert_eq!(
        (event.id.as_str(), event.chat.id.as_str()),
        ("msgA==", "u1")
    );
    assert_eq!(event.chat.kind, ChatKind::Direct);
    assert_eq!(event.sender.id, "u1");
    assert_eq!(body(&event).text, "hello");
    assert!(body(&event).addressed);
    assert_eq!(event.at.timestamp_millis(), 1_763_870_000_000);
    assert_eq!(event.context, json!({"robot": "client"}));
}

#[test]
fn group_message_belongs_to_its_conversation() {
    let mut data = recorded();
    data["conversationType"] = json!("2");
    data["isInAtList"] = json!(true);
    let event = decoded(&data);
    assert_eq!(
        (event.chat.id.as_str(), event.chat.kind),
        ("cid1", ChatKind::Group)
    );
    assert!(body(&event).addressed);
    data["isInAtList"] = json!(false);
    assert!(!body(&decoded(&data)).addressed);
}

#[test]
fn pictures_files_and_rich_texts_are_decoded() {
    let with = |kind: &str, content: Value| {
        let mut data = recorded();
        data["msgtype"] = json!(kind);
        data["content"] = content;
        let event = decoded(&data);
        let files: Vec<Option<String>> = body(&event)
            .files
            .iter()
            .map(|file| file.name.clone())
            .collect();
        (body(&event).text.clone(), files)
    };
    let name = |name: &str| Some(name.to_owned());
    assert_eq!(
        with("picture", json!({"downloadCode": "c"})),
        (String::new(), vec![name("picture.png")])
    );
    assert_eq!(
        with("file", json!({"downloadCode": "c", "fileName": "a.pdf"})),
        (String::new(), vec![name("a.pdf")])
    );
    let parts = json!({"richText": [{"text": "see "}, {"downloadCode": "c"}, {"text": "this"}]});
    assert_eq!(
        with("richText", parts),
        ("see this".to_owned(), vec![name("picture-1.png")])
    );
    assert_eq!(
        with(
            "audio",
            json!({"recognition": "spoken", "downloadCode": "c"})
        ),
        ("spoken".to_owned(), vec![name("voice.amr")])
    );
}

#[test]
fn hostile_messages_are_errors_and_never_panics() {
    for data in [
        json!(null),
        json!(7),
        json!([]),
        json!({}),
        json!({"msgId": 7}),
    ] {
        assert!(message(&data, "client").is_err(), "{data}");
    }
    let mut odd = recorded();
    for key in ["text", "content", "createAt", "senderNick", "isInAtList"] {
        odd[key] = json!([{"a": 1}]);
        let _ = message(&odd, "client");
    }
    odd["msgtype"] = json!("richText");
    odd["content"] = json!({"richText": [7, null, {"text": {}}, {"downloadCode": 5}]});
    assert_eq!(message(&odd, "client"), Ok(None));
    odd["msgtype"] = json!("hologram");
    assert_eq!(message(&odd, "client"), Ok(None));
    let mut long = recorded();
    long["text"]["content"] = json!("ä".repeat(MAX_TEXT_BYTES));
    assert!(body(&decoded(&long)).cut);
}
