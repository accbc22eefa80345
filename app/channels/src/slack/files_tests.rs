//! Tests of files in both directions against the fake.

use bytes::Bytes;
use deerflow_chat_platforms::common::Fault;
use deerflow_chat_platforms::slack::SlackFake;
use serde_json::{Value, json};

use super::super::adapter::SlackPlatform;
use super::super::fixtures::{Sink, adapter, delivery, fake, message, target, while_listening};
use crate::platform::{
    Content, Delivery, EventBody, FileBody, IncomingFile, OutgoingMessage, Platform, PlatformError,
    Sent,
};

fn file_message(fake: &SlackFake) -> OutgoingMessage {
    let ts = fake.mention("C1", "U1", "hello");
    let content = Content::File {
        user_id: "u".to_owned(),
        thread_id: "t".to_owned(),
        path: "/mnt/user-data/outputs/a.txt".to_owned(),
    };
    message(target("C1", &ts), content, Value::Null)
}

async fn send(
    platform: &SlackPlatform,
    message: &OutgoingMessage,
    delivery: &mut Delivery,
) -> Result<Sent, PlatformError> {
    let file = FileBody {
        name: "a & b.txt".to_owned(),
        media_type: "text/plain".to_owned(),
        bytes: Bytes::from_static(b"hello"),
    };
    platform.send(message, Some(file), delivery).await
}

#[tokio::test]
async fn file_is_shared_in_the_thread() {
    let fake = fake(|_| {}).await;
    let platform = adapter(&fake);
    let message = file_message(&fake);
    send(&platform, &message, &mut delivery(1, 1))
        .await
        .unwrap();
    let answers = fake.answers("C1");
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].thread_ts, message.target.topic);
    let file = fake
        .file(answers[0].files[0]["id"].as_str().unwrap())
        .unwrap();
    assert_eq!(
        (file.name.as_str(), file.bytes.as_deref()),
        ("a & b.txt", Some(&b"hello"[..]))
    );
    assert!(fake.calls().of("leak").is_empty());
}

#[tokio::test]
async fn long_text_is_sent_as_a_file() {
    let fake = fake(|_| {}).await;
    let platform = adapter(&fake);
    let mut message = file_message(&fake);
    message.content = Content::TextFile {
        name: "answer.md".to_owned(),
        text: "é".repeat(10),
    };
    platform
        .send(&message, None, &mut delivery(1, 1))
        .await
        .unwrap();
    let file = fake.file("F1").unwrap();
    assert_eq!((file.name.as_str(), file.size), ("answer.md", 20));
}

#[tokio::test]
async fn lost_replies_share_a_file_once() {
    for method in [
        "files.getUploadURLExternal",
        "upload",
        "files.completeUploadExternal",
    ] {
        let fake = fake(|_| {}).await;
        let platform = adapter(&fake);
        let message = file_message(&fake);
        let mut delivery = delivery(1, 1);
        fake.faults().script(method, [Fault::LoseReply]);
        let error = send(&platform, &message, &mut delivery).await.unwrap_err();
        assert!(matches!(error, PlatformError::Unavailable(_)), "{method}");
        delivery.attempt = 2;
        send(&platform, &message, &mut delivery).await.unwrap();
        assert_eq!(fake.answers("C1").len(), 1, "{method}");
    }
}

#[tokio::test]
async fn upload_without_scope_names_the_scope() {
    let fake = fake(|options| options.scopes.retain(|scope| scope != "files:write")).await;
    let platform = adapter(&fake);
    let message = file_message(&fake);
    let error = send(&platform, &message, &mut delivery(1, 1))
        .await
        .unwrap_err();
    let PlatformError::Refused(words) = error else {
        panic!("{error:?}");
    };
    assert!(words.contains("files:write"));
}

/// Returns the file of a message as it arrives.
async fn received(
    fake: &SlackFake,
    platform: &SlackPlatform,
    content: (&str, &str, &[u8]),
) -> IncomingFile {
    let sink = Sink::new();
    let body = async {
        sink.connected().await;
        fake.say_file("DU1", "U1", "", content);
        sink.stored(1).await
    };
    let (events, _) = while_listening(platform, &sink, None, body).await;
    match &events[0].body {
        EventBody::Message(message) => message.files[0].clone(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn received_file_is_downloaded() {
    let fake = fake(|_| {}).await;
    let platform = adapter(&fake);
    let mut file = received(&fake, &platform, ("a.txt", "text/plain", b"hello")).await;
    assert_eq!(file.name.as_deref(), Some("a.txt"));
    assert_eq!(platform.download(&file, 5).await.unwrap(), "hello");
    let too_large = platform.download(&file, 4).await.unwrap_err();
    file.size = None;
    assert_eq!(platform.download(&file, 4).await.unwrap_err(), too_large);
    assert!(matches!(too_large, PlatformError::Refused(_)));
    file.reference["url"] = Value::Null;
    assert_eq!(platform.download(&file, 5).await.unwrap(), "hello");
}

#[tokio::test]
async fn html_file_is_distinguished_from_the_login_page() {
    let fake = fake(|_| {}).await;
    let platform = adapter(&fake);
    let page = b"<!doctype html><p>hello".as_slice();
    let file = received(&fake, &platform, ("a.html", "text/html", page)).await;
    assert_eq!(platform.download(&file, 1000).await.unwrap(), page);
    fake.configure(|options| options.scopes.retain(|scope| scope != "files:read"));
    let error = platform.download(&file, 1000).await.unwrap_err();
    assert!(error.to_string().contains("files:read"));
}

#[tokio::test]
async fn login_page_is_not_a_file() {
    let fake = fake(|options| options.scopes.retain(|scope| scope != "files:read")).await;
    let platform = adapter(&fake);
    let file = received(&fake, &platform, ("a.txt", "text/plain", b"hello")).await;
    let error = platform.download(&file, 1000).await.unwrap_err();
    assert!(error.to_string().contains("files:read"));
}

#[tokio::test]
async fn foreign_hosts_are_not_asked() {
    let fake = fake(|_| {}).await;
    let other = SlackFake::start(Default::default()).await.unwrap();
    let platform = adapter(&fake);
    for url in [
        format!("{}/files-pri/F1/a", other.base()),
        "http://169.254.169.254/latest".to_owned(),
        "file:///etc/passwd".to_owned(),
        "not an address".to_owned(),
    ] {
        let file = IncomingFile {
            name: None,
            media_type: None,
            size: None,
            reference: json!({"id": "F1", "url": url}),
        };
        let error = platform.download(&file, 1000).await.unwrap_err();
        assert!(matches!(error, PlatformError::Refused(_)), "{url}");
    }
    assert!(other.calls().all().is_empty());
}
