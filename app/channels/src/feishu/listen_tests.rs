//! The long connection against the fake.

use deerflow_chat_platforms::feishu::{FeishuIncoming, FeishuOptions, FeishuRefusedHandshake};
use serde_json::json;

use super::*;
use crate::feishu::setup::{Setup, TestSink, soon};
use crate::platform::EventBody;

/// Listens while `act` works, then stops.
async fn during(
    setup: &Setup,
    sink: &TestSink,
    act: impl Future<Output = ()>,
) -> Result<(), PlatformError> {
    let stop = CancellationToken::new();
    let acting = async {
        soon(act).await;
        stop.cancel();
    };
    let (result, ()) = tokio::join!(setup.platform.listen(sink, None, stop.clone()), acting);
    soon(
        setup
            .fake
            .wait_until(|fake| (fake.connections() == 0).then_some(())),
    )
    .await;
    result
}

async fn acks(setup: &Setup, count: usize) -> Vec<i64> {
    soon(setup.fake.wait_until(|fake| {
        let acks = fake.acks();
        (acks.len() >= count).then(|| acks.iter().map(|ack| ack.code).collect())
    }))
    .await
}

fn hello() -> FeishuIncoming {
    FeishuIncoming::direct("oc_1", "ou_1", "hello")
}

#[tokio::test]
async fn failed_store_asks_for_redelivery() {
    let setup = Setup::with(FeishuOptions {
        redelivery: vec![Duration::from_millis(20); 100],
        ..FeishuOptions::default()
    })
    .await;
    let sink = TestSink::failing([SinkError::Unavailable, SinkError::Full]);
    during(&setup, &sink, async {
        setup.fake.write(hello());
        soon(
            setup
                .fake
                .wait_until(|fake| (fake.unacknowledged() == 0).then_some(())),
        )
        .await;
    })
    .await
    .unwrap();
    // Redeliveries may overlap, so that several share a code.
    let codes: Vec<i64> = setup.fake.acks().iter().map(|ack| ack.code).collect();
    assert!(
        codes.starts_with(&[500]) && codes.ends_with(&[200]),
        "{codes:?}"
    );
    assert!(sink.errors.lock().is_empty() && !sink.events.lock().is_empty());
    assert_eq!(setup.fake.violations(), [""; 0]);
}

#[tokio::test]
async fn stop_does_not_wait_for_a_store_that_hangs() {
    let setup = Setup::start().await;
    let sink = TestSink::default();
    sink.held.send_replace(true);
    let result = during(&setup, &sink, async {
        setup.fake.write(hello());
        sink.offered().await;
    })
    .await;
    assert_eq!(result, Ok(()));
    assert!(setup.fake.acks().is_empty());
    assert_eq!(setup.fake.closes(), [Some(1000)]);
}

#[tokio::test]
async fn event_in_parts_is_joined_and_acknowledged_once() {
    let setup = Setup::with(FeishuOptions {
        part_bytes: 50,
        ..FeishuOptions::default()
    })
    .await;
    let sink = TestSink::default();
    during(&setup, &sink, async {
        setup.fake.write(hello());
        setup.fake.write(hello());
        assert_eq!(acks(&setup, 2).await, [200, 200]);
    })
    .await
    .unwrap();
    assert_eq!(sink.events.lock().len(), 2);
    assert_eq!(setup.fake.violations(), [""; 0]);
}

#[tokio::test]
async fn malformed_events_are_acknowledged_and_cost_no_connection() {
    let setup = Setup::start().await;
    let sink = TestSink::default();
    during(&setup, &sink, async {
        sink.wait(|_| (setup.fake.connections() == 1).then_some(()))
            .await;
        setup.fake.push_bytes(b"\xff\xff\xff");
        setup.fake.push_bytes(b"");
        setup.fake.push("m-a", "event", "{");
        setup.fake.push("m-b", "event", "[".repeat(100_000));
        setup.fake.push("m-c", "event", b"\xc3\x28".as_slice());
        setup
            .fake
            .push("m-d", "card", "{\"action\":{\"value\":[]}}");
        let unknown = json!({"header": {"event_type": "im.chat.updated_v1"}});
        setup.fake.push("m-e", "event", unknown.to_string());
        setup.fake.write(hello());
        assert_eq!(acks(&setup, 6).await, [200; 6]);
    })
    .await
    .unwrap();
    assert_eq!(sink.events.lock().len(), 1);
    assert_eq!(setup.fake.opened(), 1);
    assert_eq!(setup.fake.violations(), [""; 0]);
}

#[tokio::test]
async fn presses_of_both_forms_arrive() {
    // A redelivery under load would add acknowledgements.
    let setup = Setup::with(FeishuOptions {
        redelivery: Vec::new(),
        ..FeishuOptions::default()
    })
    .await;
    let sink = TestSink::default();
    during(&setup, &sink, async {
        let message = setup.fake.write_unseen(hello());
        let value = json!({"d": "answer:1", "k": "p2p"});
        setup.fake.press(&message, "ou_1", &value);
        setup.fake.press_old(&message, "ou_2", &value);
        for event in sink.events(2).await {
            assert!(event.id.starts_with("press:c-"));
            let EventBody::Press(press) = event.body else {
                panic!("{:?}", event.body);
            };
            assert_eq!(press.data, "answer:1");
            assert_eq!(press.message.as_deref(), Some(message.as_str()));
        }
        assert_eq!(acks(&setup, 2).await, [200, 200]);
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn ended_connection_is_an_error_that_allows_reconnection() {
    let setup = Setup::start().await;
    for is_cut in [true, false] {
        let sink = TestSink::default();
        let opened = setup.fake.opened();
        let acting = async {
            soon(
                setup
                    .fake
                    .wait_until(|fake| (fake.opened() > opened).then_some(())),
            )
            .await;
            if is_cut {
                setup.fake.cut_connections();
            } else {
                setup.fake.close_connections();
            }
        };
        let stop = CancellationToken::new();
        let (result, ()) =
            soon(async { tokio::join!(setup.platform.listen(&sink, None, stop), acting) }).await;
        assert!(
            matches!(result, Err(PlatformError::Unavailable(_))),
            "{result:?}"
        );
    }
}

#[tokio::test]
async fn unanswered_pings_end_the_connection() {
    let setup = Setup::with(FeishuOptions {
        ping_interval: 1,
        ..FeishuOptions::default()
    })
    .await;
    setup.fake.mute(true);
    let sink = TestSink::default();
    let result = soon(setup.platform.listen(&sink, None, CancellationToken::new())).await;
    let text = "the platform does not answer pings".to_owned();
    assert_eq!(result, Err(PlatformError::Unavailable(text)));
    assert_eq!(setup.fake.calls().of("ping").len(), 2);
}

#[tokio::test]
async fn refused_handshake_is_final_or_temporary() {
    let setup = Setup::start().await;
    let sink = TestSink::default();
    for (auth_code, is_final) in [(1_000_040_350, true), (1_000_040_351, false)] {
        setup.fake.refuse_handshakes([FeishuRefusedHandshake {
            status: 514,
            message: "auth failed".to_owned(),
            auth_code: Some(auth_code),
        }]);
        let result = soon(setup.platform.listen(&sink, None, CancellationToken::new())).await;
        let is_rejected = matches!(result, Err(PlatformError::Rejected(_)));
        assert_eq!(is_rejected, is_final, "{result:?}");
    }
}

#[tokio::test]
async fn missed_messages_are_listed_from_the_cursor() {
    let setup = Setup::start().await;
    let sink = TestSink::default();
    during(&setup, &sink, async {
        setup.fake.write(hello());
        let group = FeishuIncoming::group("oc_2", "ou_1", "@_user_1 hi");
        setup
            .fake
            .write(group.mentioning("@_user_1", "ou_bot", "Bot"));
        sink.events(2).await;
    })
    .await
    .unwrap();
    let cursor = sink.cursor.lock().clone();
    // Times have the resolution of a millisecond.
    setup.fake.next_millisecond();
    let missed = setup.fake.write_unseen(hello());
    for number in 0..60 {
        let group = FeishuIncoming::group("oc_2", "ou_1", &format!("unaddressed {number}"));
        setup.fake.write_unseen(group);
    }
    let group = FeishuIncoming::group("oc_2", "ou_1", "@_user_1 again");
    let in_group = setup
        .fake
        .write_unseen(group.mentioning("@_user_1", "ou_bot", "Bot"));
    let sink = TestSink::default();
    let stop = CancellationToken::new();
    let acting = async {
        let ids: Vec<String> = sink
            .wait(|sink| {
                let events = sink.events.lock();
                let ids: Vec<String> = events.iter().map(|event| event.id.clone()).collect();
                ids.contains(&in_group).then_some(ids)
            })
            .await;
        assert_eq!(ids, [missed.as_str(), in_group.as_str()]);
        stop.cancel();
    };
    let (result, ()) = tokio::join!(setup.platform.listen(&sink, cursor, stop.clone()), acting);
    assert_eq!(result, Ok(()));
}

#[tokio::test]
async fn every_message_is_stored_despite_cuts_and_failed_stores() {
    let setup = Setup::with(FeishuOptions {
        redelivery: vec![Duration::from_millis(10); 2_000],
        part_bytes: 300,
        ghosts: true,
        ..FeishuOptions::default()
    })
    .await;
    let errors = (0..60).map(|number| match number % 2 {
        0 => SinkError::Full,
        _ => SinkError::Unavailable,
    });
    let sink = TestSink::failing(errors);
    let stop = CancellationToken::new();
    let listening = async {
        while setup
            .platform
            .listen(&sink, None, stop.clone())
            .await
            .is_err()
        {}
    };
    let mut written = std::collections::BTreeSet::new();
    let acting = async {
        for round in 0..6 {
            let opened = setup.fake.opened();
            for number in 0..50 {
                let text = format!("{round} {number}");
                let incoming = FeishuIncoming::direct("oc_1", "ou_1", &text);
                written.insert(setup.fake.write(incoming));
            }
            sink.wait(|sink| (sink.events.lock().len() > round * 20).then_some(()))
                .await;
            setup.fake.cut_connections();
            soon(
                setup
                    .fake
                    .wait_until(|fake| (fake.opened() > opened).then_some(())),
            )
            .await;
        }
        soon(
            setup
                .fake
                .wait_until(|fake| (fake.unacknowledged() == 0).then_some(())),
        )
        .await;
        stop.cancel();
    };
    tokio::join!(listening, acting);
    let stored = sink.events.lock();
    let stored: std::collections::BTreeSet<String> =
        stored.iter().map(|event| event.id.clone()).collect();
    assert_eq!(stored, written);
    assert_eq!(setup.fake.violations(), [""; 0]);
}
