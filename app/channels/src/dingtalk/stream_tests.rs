//! Tests of listening, against the fake platform.

use std::time::Duration;

use deerflow_chat_platforms::common::Fault;
use deerflow_chat_platforms::dingtalk::{DingTalkOptions, GROUP, PersonMessage, STAFF};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::fixture::{Fixture, LIMIT};
use crate::platform::{ChatKind, Platform, PlatformError};

#[tokio::test]
async fn messages_are_stored_in_order_before_their_acks() {
    let fixture = Fixture::start().await;
    let controls = fixture.fake.controls();
    let (errors, ids) = fixture
        .listen_during(async {
            fixture.wait_call("ack ping", 1).await;
            let ids: Vec<String> = (0..60)
                .map(|number| {
                    let text = format!("text {number}");
                    controls.write(&match number % 2 {
                        0 => PersonMessage::direct(text),
                        _ => PersonMessage::group(text),
                    })
                })
                .collect();
            fixture.wait_call("ack message", 60).await;
            ids
        })
        .await;
    assert_eq!(errors, []);
    assert_eq!(controls.acknowledged(), ids);
    let expected: Vec<String> = (0..60).map(|number| format!("text {number}")).collect();
    assert_eq!(fixture.sink.texts(), expected);
    let events = fixture.sink.events();
    assert_eq!(
        (events[0].chat.kind, events[0].chat.id.as_str()),
        (ChatKind::Direct, STAFF)
    );
    assert_eq!(
        (events[1].chat.kind, events[1].chat.id.as_str()),
        (ChatKind::Group, GROUP)
    );
    fixture.wait_call("close", 1).await;
    assert_eq!(
        fixture.fake.calls().of("close")[0].body,
        json!({"code": 1000})
    );
    assert!(fixture.fake.calls().of("ack").is_empty());
}

#[tokio::test]
async fn announced_end_opens_a_new_connection() {
    let fixture = Fixture::start().await;
    let controls = fixture.fake.controls();
    let (errors, ()) = fixture
        .listen_during(async {
            fixture.sink.wait_connected(1).await;
            controls.write(&PersonMessage::direct("one"));
            controls.disconnect();
            fixture.wait_call("ack disconnect", 1).await;
            fixture.sink.wait_connected(2).await;
            controls.write(&PersonMessage::direct("two"));
            fixture.wait_call("ack message", 2).await;
        })
        .await;
    assert_eq!(errors, []);
    assert_eq!(fixture.sink.texts(), ["one", "two"]);
    assert_eq!(fixture.calls("open"), 2);
}

#[tokio::test]
async fn quiet_connection_stays_open_while_pongs_arrive() {
    let fixture = Fixture::start().await;
    let (errors, ()) = fixture
        .listen_during(async {
            // Several times the silence after which a connection counts as dead.
            fixture.wait_call("ping", 30).await;
        })
        .await;
    assert_eq!(errors, []);
    assert_eq!(fixture.calls("open"), 1);
}

#[tokio::test]
async fn silent_connection_is_replaced() {
    let options = DingTalkOptions {
        redelivery: Duration::from_millis(200),
        ..DingTalkOptions::default()
    };
    let fixture = Fixture::with(options, &[]).await;
    let controls = fixture.fake.controls();
    let (errors, ()) = fixture
        .listen_during(async {
            fixture.sink.wait_connected(1).await;
            controls.freeze();
            controls.write(&PersonMessage::direct("one"));
            fixture.wait_call("ack message", 1).await;
        })
        .await;
    let silent = PlatformError::Unavailable("the connection to DingTalk is silent".to_owned());
    assert_eq!(errors, [silent]);
    assert_eq!(fixture.sink.texts(), ["one"]);
}

#[tokio::test]
async fn malformed_frames_are_acknowledged_and_survived() {
    let fixture = Fixture::start().await;
    let controls = fixture.fake.controls();
    let (errors, ()) = fixture
        .listen_during(async {
            fixture.sink.wait_connected(1).await;
            for text in ["", "{", "null", "[[[[", r#"{"type":"CALLBACK"}"#] {
                controls.raw(text);
            }
            for data in [json!(null), json!(7), json!({"msgId": 5}), json!([[]])] {
                controls.deliver(&data);
            }
            controls.write(&PersonMessage::direct("after"));
            fixture.wait_call("ack message", 5).await;
        })
        .await;
    assert_eq!(errors, []);
    assert_eq!(fixture.sink.texts(), ["after"]);
    assert_eq!((controls.waiting(), fixture.calls("open")), (0, 1));
}

#[tokio::test]
async fn unavailable_platform_is_no_rejection() {
    let fixture = Fixture::start().await;
    let busy = Fault::Answer {
        status: 503,
        body: json!({}),
        headers: [].into(),
    };
    fixture.fake.faults().script("open", [busy]);
    let listening = fixture
        .platform
        .listen(&fixture.sink, None, CancellationToken::new());
    let result = tokio::time::timeout(LIMIT, listening).await.unwrap();
    assert!(
        matches!(result, Err(PlatformError::Unavailable(_))),
        "{result:?}"
    );
}
