//! Tests of sending, against the fake platform.

use bytes::Bytes;
use deerflow_chat_platforms::common::Fault;
use deerflow_chat_platforms::dingtalk::{
    DingTalkOptions, GROUP, PersonMessage, STAFF, TEMPLATE, WrittenBody,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::fixture::{Fixture, delivery, target, text};
use crate::platform::{
    ChatKind, Content, EventBody, FileBody, IncomingFile, LiveReply, OutgoingMessage, Platform,
    PlatformError,
};

fn live(kind: ChatKind) -> LiveReply {
    LiveReply {
        key: Uuid::from_u128(9),
        target: target(kind),
        stop: None,
        state: Value::Null,
        may_exist: false,
    }
}

fn file(name: &str, media_type: &str, size: usize) -> FileBody {
    FileBody {
        name: name.to_owned(),
        media_type: media_type.to_owned(),
        bytes: Bytes::from(vec![b'x'; size]),
    }
}

fn file_message() -> OutgoingMessage {
    OutgoingMessage {
        content: Content::File {
            user_id: "u".to_owned(),
            thread_id: "t".to_owned(),
            path: "/report.pdf".to_owned(),
        },
        ..text(ChatKind::Direct, "")
    }
}

async fn with_template() -> Fixture {
    let settings = [("card_template_id", TEMPLATE)];
    Fixture::with(DingTalkOptions::default(), &settings).await
}

#[tokio::test]
async fn texts_go_to_persons_and_groups() {
    let fixture = Fixture::start().await;
    let controls = fixture.fake.controls();
    for (number, kind) in [(1, ChatKind::Direct), (2, ChatKind::Group)] {
        let message = text(kind, "**hello**");
        let sent = fixture
            .platform
            .send(&message, None, &mut delivery(number))
            .await
            .unwrap();
        assert_eq!(sent.ids.len(), 1);
    }
    assert_eq!(controls.texts(STAFF), ["**hello**"]);
    assert_eq!(controls.texts(GROUP), ["**hello**"]);
    assert_eq!(fixture.calls("token"), 1);
    let mut stranger = text(ChatKind::Direct, "hello");
    stranger.target.chat.id = "$:outside".to_owned();
    let refused = fixture
        .platform
        .send(&stranger, None, &mut delivery(3))
        .await;
    assert!(matches!(refused, Err(PlatformError::Refused(_))));
}

#[tokio::test]
async fn expired_token_is_renewed_once() {
    let fixture = Fixture::start().await;
    let controls = fixture.fake.controls();
    let message = text(ChatKind::Direct, "hello");
    fixture
        .platform
        .send(&message, None, &mut delivery(1))
        .await
        .unwrap();
    controls.expire_tokens();
    fixture
        .platform
        .send(&message, None, &mut delivery(2))
        .await
        .unwrap();
    assert_eq!(controls.texts(STAFF).len(), 2);
    assert_eq!(fixture.calls("token"), 2);
}

#[tokio::test]
async fn too_many_group_messages_are_reported_with_a_delay() {
    let fixture = Fixture::start().await;
    let message = text(ChatKind::Group, "hello");
    let mut results = Vec::new();
    for number in 0..21 {
        let mut delivery = delivery(number);
        results.push(fixture.platform.send(&message, None, &mut delivery).await);
    }
    let last = results.pop().unwrap();
    assert!(results.iter().all(Result::is_ok));
    let Err(PlatformError::RateLimited { retry_after, .. }) = last else {
        panic!("{last:?}");
    };
    assert_eq!(retry_after.as_secs(), 60);
    assert_eq!(
        fixture.platform.abilities().rates.group_per_minute,
        Some(18)
    );
}

#[tokio::test]
async fn card_streams_and_completes_the_answer() {
    let fixture = with_template().await;
    let controls = fixture.fake.controls();
    assert!(fixture.platform.abilities().live.is_some());
    for kind in [ChatKind::Direct, ChatKind::Group] {
        let mut reply = live(kind);
        reply.key = Uuid::from_u128(kind as u128);
        for part in ["One", "One two"] {
            fixture
                .platform
                .update_live(&mut reply, part)
                .await
                .unwrap();
            let shown = controls.cards();
            assert!(shown.iter().any(|card| card.1 == part && !card.2));
        }
        let mut last = text(kind, "One two three");
        last.live = reply.state.clone();
        let mut delivery = delivery(kind as u128);
        let sent = fixture.platform.send(&last, None, &mut delivery).await;
        assert_eq!(json!(sent.unwrap().ids[0]), reply.state["card"]);
        // A repetition after a lost answer is accepted.
        fixture
            .platform
            .send(&last, None, &mut delivery)
            .await
            .unwrap();
    }
    let cards = controls.cards();
    let complete = |space: &str| (space.to_owned(), "One two three".to_owned(), true);
    assert!(cards.contains(&complete(&format!("dtv1.card//IM_ROBOT.{STAFF}"))));
    assert!(cards.contains(&complete(&format!("dtv1.card//IM_GROUP.{GROUP}"))));
    assert_eq!(controls.sent(), []);
}

#[tokio::test]
async fn lost_reply_of_a_card_creates_one_card() {
    let fixture = with_template().await;
    fixture
        .fake
        .faults()
        .script("create_card", [Fault::LoseReply]);
    let mut reply = live(ChatKind::Direct);
    let first = fixture.platform.update_live(&mut reply, "One").await;
    assert!(matches!(first, Err(PlatformError::Unavailable(_))));
    fixture
        .platform
        .update_live(&mut reply, "One")
        .await
        .unwrap();
    assert_eq!(fixture.fake.controls().cards().len(), 1);
}

#[tokio::test]
async fn expired_card_is_replaced_by_a_message() {
    let fixture = with_template().await;
    let controls = fixture.fake.controls();
    let mut reply = live(ChatKind::Group);
    fixture
        .platform
        .update_live(&mut reply, "One")
        .await
        .unwrap();
    controls.expire_cards();
    let expired = fixture.platform.update_live(&mut reply, "One two").await;
    assert!(matches!(expired, Err(PlatformError::LiveExpired(_))));
    let mut last = text(ChatKind::Group, "One two three");
    last.live = reply.state.clone();
    fixture
        .platform
        .send(&last, None, &mut delivery(1))
        .await
        .unwrap();
    assert_eq!(controls.texts(GROUP), ["One two three"]);
}

#[tokio::test]
async fn text_follows_an_expired_card_after_a_failed_attempt() {
    let fixture = with_template().await;
    let controls = fixture.fake.controls();
    let mut reply = live(ChatKind::Group);
    fixture
        .platform
        .update_live(&mut reply, "One")
        .await
        .unwrap();
    controls.expire_cards();
    let failure = Fault::Answer {
        status: 503,
        body: json!({}),
        headers: Default::default(),
    };
    fixture.fake.faults().script("send_group", [failure]);
    let mut last = text(ChatKind::Group, "One two");
    last.live = reply.state.clone();
    let mut delivery = delivery(1);
    let failed = fixture.platform.send(&last, None, &mut delivery).await;
    assert!(matches!(failed, Err(PlatformError::Unavailable(_))));
    delivery.attempt += 1;
    fixture
        .platform
        .send(&last, None, &mut delivery)
        .await
        .unwrap();
    assert_eq!(controls.texts(GROUP), ["One two"]);
}

#[tokio::test]
async fn refused_template_is_not_tried_again() {
    let settings = [("card_template_id", "unknown")];
    let fixture = Fixture::with(DingTalkOptions::default(), &settings).await;
    let mut reply = live(ChatKind::Direct);
    for part in ["One", "One two"] {
        fixture
            .platform
            .update_live(&mut reply, part)
            .await
            .unwrap();
    }
    assert_eq!(fixture.calls("create_card"), 1);
    let mut last = text(ChatKind::Direct, "One two three");
    last.live = reply.state.clone();
    fixture
        .platform
        .send(&last, None, &mut delivery(1))
        .await
        .unwrap();
    assert_eq!(fixture.fake.controls().texts(STAFF), ["One two three"]);
}

#[tokio::test]
async fn files_are_uploaded_once_and_sent() {
    let fixture = Fixture::start().await;
    let controls = fixture.fake.controls();
    let busy = Fault::RateLimited {
        retry_after: 3.0,
        silent: false,
    };
    fixture.fake.faults().script("send_direct", [busy]);
    let mut attempt = delivery(1);
    let report = file("report.pdf", "application/pdf", 1000);
    let first = fixture
        .platform
        .send(&file_message(), Some(report.clone()), &mut attempt)
        .await;
    assert!(matches!(first, Err(PlatformError::RateLimited { .. })));
    attempt.attempt = 2;
    fixture
        .platform
        .send(&file_message(), Some(report), &mut attempt)
        .await
        .unwrap();
    assert_eq!(fixture.calls("upload"), 1);
    let picture = file("chart.png", "image/png", 10);
    fixture
        .platform
        .send(&file_message(), Some(picture), &mut delivery(2))
        .await
        .unwrap();
    let sent = controls.sent();
    assert_eq!(sent[0].1, "sampleFile");
    assert_eq!(sent[0].2["fileType"], "pdf");
    assert_eq!(sent[1].1, "sampleImageMsg");
    let media = sent[0].2["mediaId"].as_str().unwrap();
    assert_eq!(controls.file(media).unwrap().len(), 1000);
    let large = file("a.bin", "application/octet-stream", 20 * 1024 * 1024 + 1);
    let refused = fixture
        .platform
        .send(&file_message(), Some(large), &mut delivery(3))
        .await;
    assert!(matches!(refused, Err(PlatformError::Refused(_))));
}

#[tokio::test]
async fn received_files_are_downloaded_without_token() {
    let fixture = Fixture::start().await;
    let controls = fixture.fake.controls();
    let base64 = "aGVsbG8=".to_owned();
    let bodies = [
        WrittenBody::Picture(base64.clone()),
        WrittenBody::File {
            name: "note.txt".to_owned(),
            base64: base64.clone(),
        },
        WrittenBody::RichText {
            text: "see".to_owned(),
            base64,
        },
    ];
    let (errors, ()) = fixture
        .listen_during(async {
            for body in bodies {
                controls.write(&PersonMessage {
                    body,
                    ..PersonMessage::default()
                });
            }
            fixture.wait_call("ack message", 3).await;
        })
        .await;
    assert_eq!(errors, []);
    let files: Vec<IncomingFile> = fixture
        .sink
        .events()
        .into_iter()
        .flat_map(|event| match event.body {
            EventBody::Message(message) => message.files,
            _ => Vec::new(),
        })
        .collect();
    assert_eq!(files.len(), 3);
    for file in &files {
        let bytes = fixture.platform.download(file, 5).await.unwrap();
        assert_eq!(bytes.as_ref(), b"hello");
        let refused = fixture.platform.download(file, 4).await;
        assert!(matches!(refused, Err(PlatformError::Refused(_))));
    }
    let calls = fixture.fake.calls().of("file");
    assert!(calls.iter().all(|call| call.error == 0));
    let mut gone = files[0].clone();
    gone.reference["code"] = json!("gone");
    let refused = fixture.platform.download(&gone, 100).await;
    assert!(matches!(refused, Err(PlatformError::Refused(_))));
}
