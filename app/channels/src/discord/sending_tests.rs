//! Tests of sending, against the fake platform.

use std::time::Duration;

use bytes::Bytes;
use chrono::TimeDelta;
use deerflow_chat_platforms::common::Fault;
use deerflow_chat_platforms::discord::{
    Attachment, CHANNEL, DIRECT, DiscordOptions, PERSON, PersonMessage,
};
use serde_json::{Value, json};
use uuid::Uuid;

use super::fixture::{Fixture, delivery, target, text};
use crate::markup::Part;
use crate::platform::{
    Button, Content, EventBody, FileBody, LiveReply, OutgoingMessage, Platform, PlatformError,
    Receipt, Target,
};

fn live(channel: u64) -> LiveReply {
    LiveReply {
        key: Uuid::from_u128(9),
        target: target(channel),
        stop: Some(Button {
            label: "Stop".to_owned(),
            data: "stop:1".to_owned(),
        }),
        state: Value::Null,
        may_exist: false,
    }
}

fn file(size: usize) -> FileBody {
    FileBody {
        name: "report.txt".to_owned(),
        media_type: "text/plain".to_owned(),
        bytes: Bytes::from(vec![b'x'; size]),
    }
}

fn file_message(channel: u64) -> OutgoingMessage {
    OutgoingMessage {
        content: Content::File {
            user_id: "u".to_owned(),
            thread_id: "t".to_owned(),
            path: "/report.txt".to_owned(),
        },
        ..text(target(channel), "")
    }
}

#[tokio::test]
async fn late_retry_finds_the_message_of_the_first_attempt() {
    let fixture = Fixture::start().await;
    let message = text(target(DIRECT), "once");
    let mut first = delivery(1);
    let sent = fixture
        .platform
        .send(&message, None, &mut first)
        .await
        .unwrap();
    // The nonce is forgotten after a few minutes.
    fixture.clock.advance(TimeDelta::minutes(30));
    first.attempt = 2;
    let again = fixture
        .platform
        .send(&message, None, &mut first)
        .await
        .unwrap();
    assert_eq!(again, sent);
    assert_eq!(fixture.calls("create_message"), 1);
}

#[tokio::test]
async fn live_message_is_edited_and_completed() {
    let fixture = Fixture::start().await;
    let controls = fixture.fake.controls();
    let mut reply = live(CHANNEL);
    for part in ["One", "One two"] {
        fixture
            .platform
            .update_live(&mut reply, part)
            .await
            .unwrap();
        assert_eq!(controls.texts(CHANNEL), [part]);
        let row = controls.messages()[0]["components"].clone();
        assert_eq!(row[0]["components"][0]["custom_id"], "stop:1");
    }
    let mut last = text(target(CHANNEL), "One two three");
    last.live = reply.state.clone();
    let sent = fixture
        .platform
        .send(&last, None, &mut delivery(2))
        .await
        .unwrap();
    assert_eq!(controls.texts(CHANNEL), ["One two three"]);
    assert_eq!(controls.messages()[0]["components"], json!([]));
    assert_eq!(json!(sent.ids[0]), reply.state["message"]);
}

#[tokio::test]
async fn removed_live_message_continues_in_a_new_one() {
    let fixture = Fixture::start().await;
    let controls = fixture.fake.controls();
    let mut reply = live(CHANNEL);
    fixture
        .platform
        .update_live(&mut reply, "One")
        .await
        .unwrap();
    let id = reply.state["message"].as_str().unwrap().parse().unwrap();
    controls.remove_message(id);
    let error = fixture.platform.update_live(&mut reply, "One two").await;
    assert!(matches!(error, Err(PlatformError::LiveExpired(_))));
    let mut last = text(target(CHANNEL), "One two three");
    last.live = reply.state.clone();
    fixture
        .platform
        .send(&last, None, &mut delivery(2))
        .await
        .unwrap();
    assert_eq!(controls.texts(CHANNEL), ["One two three"]);
}

#[tokio::test]
async fn long_live_text_is_cut_to_the_limit() {
    let fixture = Fixture::start().await;
    let mut reply = live(DIRECT);
    let long = "😀 word ".repeat(2000);
    fixture
        .platform
        .update_live(&mut reply, &long)
        .await
        .unwrap();
    assert_eq!(fixture.fake.controls().texts(DIRECT).len(), 1);
}

#[tokio::test]
async fn rate_limit_stops_calls_for_the_named_time() {
    let fixture = Fixture::start().await;
    let limit = Fault::RateLimited {
        retry_after: 33.5,
        silent: false,
    };
    fixture.fake.faults().script("create_message", [limit]);
    let message = text(target(CHANNEL), "hello");
    let mut delivery = delivery(1);
    for _ in 0..3 {
        let error = fixture
            .platform
            .send(&message, None, &mut delivery)
            .await
            .unwrap_err();
        let PlatformError::RateLimited {
            retry_after,
            account: false,
        } = error
        else {
            panic!("{error:?}");
        };
        assert!(retry_after > Duration::from_secs(30));
        assert!(retry_after <= Duration::from_millis(33_500));
    }
    assert_eq!(fixture.calls("create_message"), 1);
    let other = text(target(DIRECT), "hello");
    fixture
        .platform
        .send(&other, None, &mut delivery)
        .await
        .unwrap();
}

#[tokio::test]
async fn announced_limits_are_never_exceeded() {
    let fixture = Fixture::start().await;
    for number in 0..20 {
        let message = text(target(CHANNEL), "hello");
        let mut delivery = delivery(number);
        let _ = fixture.platform.send(&message, None, &mut delivery).await;
    }
    let calls = fixture.fake.calls().of("create_message");
    assert_eq!(calls.len(), 5);
    assert!(calls.iter().all(|call| call.error == 0));
}

#[tokio::test]
async fn refused_thread_is_replaced_by_a_reply() {
    let settings = [("thread_mode", json!(true))];
    let fixture = Fixture::with(DiscordOptions::default(), &settings).await;
    let controls = fixture.fake.controls();
    let refusal = Fault::Answer {
        status: 403,
        body: json!({"code": 50013, "message": "Missing Permissions"}),
        headers: [].into(),
    };
    fixture.fake.faults().script("create_thread", [refusal]);
    let (result, event) = fixture
        .listen_during(async {
            fixture.wait_connected(1).await;
            controls.say(CHANNEL, "<@1> question");
            fixture.sink.wait_events(1).await;
            fixture.sink.events().remove(0)
        })
        .await;
    result.unwrap();
    let to = Target::of(&event);
    fixture.platform.show(&to, Receipt::Working).await.unwrap();
    for (number, part) in [(1, "part one"), (2, "part two")] {
        let message = text(to.clone(), part);
        fixture
            .platform
            .send(&message, None, &mut delivery(number))
            .await
            .unwrap();
    }
    assert_eq!(controls.texts(CHANNEL), ["part one", "part two"]);
    assert_eq!(fixture.calls("create_thread"), 1);
    fixture.platform.show(&to, Receipt::Done).await.unwrap();
    assert_eq!(
        controls.reactions(),
        [(event.id.parse().unwrap(), "✅".to_owned())]
    );
}

#[tokio::test]
async fn press_is_stored_and_confirmed() {
    let fixture = Fixture::start().await;
    let controls = fixture.fake.controls();
    let buttons = ["Yes", "No"].map(|label| Button {
        label: label.to_owned(),
        data: format!("answer:{label}"),
    });
    let mut question = text(target(CHANNEL), "");
    question.content = Content::Buttons {
        text: Part {
            markup: "Go on?".to_owned(),
            plain: "Go on?".to_owned(),
        },
        buttons: buttons.into(),
    };
    let sent = fixture
        .platform
        .send(&question, None, &mut delivery(1))
        .await
        .unwrap();
    let message = sent.ids[0].parse().unwrap();
    let (result, interaction) = fixture
        .listen_during(async {
            fixture.wait_connected(1).await;
            let interaction = controls.press(message, "answer:Yes", PERSON).unwrap();
            fixture.sink.wait_events(1).await;
            interaction
        })
        .await;
    result.unwrap();
    let event = fixture.sink.events().remove(0);
    assert_eq!(event.id, format!("press:{interaction}"));
    assert_eq!(fixture.sink.texts(), ["press answer:Yes"]);
    assert!(!controls.is_answered(interaction));
    let to = Target::of(&event);
    fixture.platform.confirm_press(&to, "").await.unwrap();
    assert!(controls.is_answered(interaction));
    fixture.platform.confirm_press(&to, "again").await.unwrap();
}

#[tokio::test]
async fn files_are_sent_once_and_received_within_limits() {
    let fixture = Fixture::start().await;
    let controls = fixture.fake.controls();
    fixture
        .fake
        .faults()
        .script("create_message", [Fault::LoseReply]);
    let message = file_message(DIRECT);
    let mut attempt = delivery(1);
    let first = fixture
        .platform
        .send(&message, Some(file(1000)), &mut attempt)
        .await;
    assert!(matches!(first, Err(PlatformError::Unavailable(_))));
    attempt.attempt = 2;
    fixture
        .platform
        .send(&message, Some(file(1000)), &mut attempt)
        .await
        .unwrap();
    assert_eq!(controls.messages().len(), 1);
    let shown = &controls.messages()[0]["attachments"][0];
    assert_eq!(
        (&shown["filename"], &shown["size"]),
        (&json!("report.txt"), &json!(1000))
    );
    let large = fixture
        .platform
        .send(&message, Some(file(10 * 1024 * 1024 + 1)), &mut delivery(2))
        .await;
    assert!(matches!(large, Err(PlatformError::Refused(_))));

    let (result, ()) = fixture
        .listen_during(async {
            fixture.wait_connected(1).await;
            controls.write(&PersonMessage {
                attachments: vec![Attachment {
                    filename: "note.txt".to_owned(),
                    base64: "aGVsbG8=".to_owned(),
                }],
                ..PersonMessage::new(DIRECT, "")
            });
            fixture.sink.wait_events(1).await;
        })
        .await;
    result.unwrap();
    let event = fixture.sink.events().remove(0);
    let EventBody::Message(received) = event.body else {
        panic!("a message");
    };
    let file = &received.files[0];
    let bytes = fixture.platform.download(file, 5).await.unwrap();
    assert_eq!(bytes.as_ref(), b"hello");
    let mut unknown_size = file.clone();
    unknown_size.size = None;
    for file in [file, &unknown_size] {
        let refused = fixture.platform.download(file, 4).await;
        assert!(matches!(refused, Err(PlatformError::Refused(_))));
    }
    let expired = Fault::Answer {
        status: 404,
        body: Value::Null,
        headers: [].into(),
    };
    fixture.fake.faults().script("attachment", [expired]);
    let renewed = fixture.platform.download(file, 100).await.unwrap();
    assert_eq!(renewed.as_ref(), b"hello");
    assert_eq!(fixture.calls("refresh_urls"), 1);
    assert_eq!(controls.violations(), Vec::<String>::new());
}
