//! Tests of the listener against the fake.

use std::time::Duration;

use deerflow_chat_platforms::common::{Call, Fault};
use deerflow_chat_platforms::slack::SlackFake;
use serde_json::json;

use super::super::fixtures::{
    Sink, adapter, adapter_with, calls, fake, listen_until_error, while_listening,
};
use super::super::links::Timing;
use crate::platform::{EventBody, PlatformError, SinkError};

/// Timeout of acknowledgements that no load reaches.
const NO_TIMEOUT: Duration = Duration::from_secs(600);

#[tokio::test]
async fn full_conversation_does_not_stop_others() {
    let fake = fake(|options| {
        options.redelivery = Vec::new();
        options.ack_timeout = Duration::from_secs(3);
    })
    .await;
    let sink = Sink::deciding(|events| {
        let has_full_chat = events.iter().any(|event| event.chat.id == "C1");
        if has_full_chat {
            Err(SinkError::Full)
        } else {
            Ok(())
        }
    });
    let platform = adapter_with(&fake, Timing::default(), ("xoxb-1", "xapp-1"));
    let body = async {
        sink.connected().await;
        for number in 0..5 {
            fake.say("C1", "U1", &number.to_string());
            fake.say("C2", "U1", &number.to_string());
        }
        sink.stored(5).await;
        calls(&fake, "undelivered", 1, 5).await;
    };
    let ((), result) = while_listening(&platform, &sink, None, body).await;
    assert_eq!(result, Ok(()));
    let texts: Vec<String> = sink
        .events()
        .into_iter()
        .filter_map(|event| match event.body {
            EventBody::Message(message) => Some(message.text),
            _ => None,
        })
        .collect();
    assert_eq!(texts.len(), 5);
    assert_eq!(calls(&fake, "ack", 0, 5).await.len(), 5);
}

#[tokio::test]
async fn replacement_is_open_before_the_old_connection_ends() {
    let fake = fake(|_| {}).await;
    let sink = Sink::new();
    let platform = adapter(&fake);
    let body = async {
        sink.connected().await;
        for reason in ["warning", "refresh_requested"] {
            fake.disconnect(reason);
            let opened = fake.calls().of("socket.open").len();
            calls(&fake, "socket.open", 0, opened + 1).await;
            fake.say("C1", "U1", reason);
            calls(&fake, "socket.close", 0, opened).await;
        }
        sink.stored(2).await;
    };
    let ((), result) = while_listening(&platform, &sink, None, body).await;
    assert_eq!(result, Ok(()));
    let order: Vec<(String, u64)> = fake
        .calls()
        .all()
        .into_iter()
        .filter(|call| call.method.starts_with("socket."))
        .map(|call| (call.method, call.body["link"].as_u64().unwrap()))
        .collect();
    let position = |method: &str, link| {
        let searched = (method.to_owned(), link);
        order.iter().position(|found| *found == searched).unwrap()
    };
    assert!(position("socket.open", 2) < position("socket.close", 1));
    assert!(position("socket.open", 3) < position("socket.close", 2));
    assert!(fake.calls().of("unconnected").is_empty());
}

#[tokio::test]
async fn final_disconnect_reasons_have_words() {
    for (reason, is_rejected) in [("link_disabled", true), ("too_many_websockets", false)] {
        let fake = fake(|_| {}).await;
        let sink = Sink::new();
        let platform = adapter(&fake);
        let error = listen_until_error(&platform, &sink, async {
            sink.connected().await;
            fake.disconnect(reason);
        })
        .await;
        match error {
            PlatformError::Rejected(words) => assert!(is_rejected && words.contains("enable")),
            PlatformError::Displaced(words) => assert!(!is_rejected && words.contains("too many")),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn lost_connections_end_the_listener() {
    let endings: [fn(&SlackFake); 3] = [SlackFake::silence, SlackFake::drop_connections, |fake| {
        fake.close(1001);
    }];
    for end in endings {
        let fake = fake(|_| {}).await;
        let sink = Sink::new();
        let platform = adapter(&fake);
        let error = listen_until_error(&platform, &sink, async {
            sink.connected().await;
            end(&fake);
        })
        .await;
        assert!(matches!(error, PlatformError::Unavailable(_)), "{error:?}");
    }
}

#[tokio::test]
async fn hostile_frames_do_not_end_the_connection() {
    let fake = fake(|options| {
        options.redelivery = Vec::new();
        options.ack_timeout = NO_TIMEOUT;
    })
    .await;
    let sink = Sink::new();
    let platform = adapter_with(&fake, Timing::default(), ("xoxb-1", "xapp-1"));
    let body = async {
        sink.connected().await;
        let deep = format!(
            r#"{{"envelope_id":"deep","type":"events_api","payload":{}{}}}"#,
            "[".repeat(5000),
            "]".repeat(5000)
        );
        for text in ["", "{", "[]", "7", r#"{"type":"disconnect"}"#, &deep] {
            fake.send_text(text);
        }
        fake.send_bytes(&[0xff, 0xfe]);
        for event in [
            json!(null),
            json!({"type": "message"}),
            json!({"type": "message", "channel": "C1", "user": 5, "ts": []}),
            json!({"type": "unknown"}),
        ] {
            fake.send_event(event);
        }
        fake.send_envelope("slash_commands", json!({"command": "/new"}));
        fake.send_envelope("interactive", json!({"type": "view_submission"}));
        calls(&fake, "ack", 0, 6).await;
        let unknown = calls(&fake, "ack", 1, 1).await;
        assert_eq!(unknown[0].body["envelope_id"], "deep");
        fake.mention("C1", "U1", "still here");
        sink.stored(1).await;
    };
    let ((), result) = while_listening(&platform, &sink, None, body).await;
    assert_eq!(result, Ok(()));
    assert!(fake.calls().of("undelivered").is_empty());
}

#[tokio::test]
async fn invalid_tokens_are_rejected() {
    let fake = fake(|_| {}).await;
    for tokens in [
        ("xoxb-bad", "xapp-1"),
        ("xoxb-1", "xapp-bad"),
        ("xoxb-1", "xoxb-1"),
    ] {
        let platform = adapter_with(&fake, Timing::default(), tokens);
        let error = listen_until_error(&platform, &Sink::new(), async {}).await;
        let PlatformError::Rejected(words) = error else {
            panic!("{error:?}");
        };
        assert!(words.contains("token") && !words.contains("bad"), "{words}");
    }
}

#[tokio::test]
async fn missed_messages_are_fetched_from_the_cursor() {
    let fake = fake(|options| {
        options.redelivery = Vec::new();
        options.ack_timeout = Duration::from_secs(10);
    })
    .await;
    let old = fake.mention("C1", "U1", "old");
    let direct = fake.say_dm("U1", "old direct");
    let missed = fake.mention("C1", "U1", "missed");
    fake.say("C1", "U1", "not for the bot");
    let answer = fake.say_in_thread("C1", "U1", &old, "answer in the thread");
    let missed_direct = fake.say_dm("U1", "missed direct");
    calls(&fake, "undelivered", 1, 8).await;
    let cursor = json!({"C1": old, format!("C1/{old}"): old, "DU1": direct}).to_string();
    let sink = Sink::new();
    let platform = adapter_with(&fake, Timing::default(), ("xoxb-1", "xapp-1"));
    let body = async {
        let events = sink.stored(3).await;
        let later = fake.mention("C2", "U1", "later");
        sink.stored(4).await;
        (events, later)
    };
    let ((events, later), result) = while_listening(&platform, &sink, Some(cursor), body).await;
    assert_eq!(result, Ok(()));
    let mut ids: Vec<String> = events.into_iter().map(|event| event.id).collect();
    ids.sort();
    assert_eq!(ids, [missed, answer.clone(), missed_direct.clone()]);
    let cursor = sink.cursor();
    assert_eq!(
        (&cursor["DU1"], &cursor["C2"]),
        (&json!(missed_direct), &json!(later))
    );
    assert_eq!(cursor[format!("C1/{old}")], json!(answer));
}

#[tokio::test]
async fn press_is_acknowledged_after_it_is_stored() {
    let fake = fake(|_| {}).await;
    let sink = Sink::new();
    let platform = adapter(&fake);
    let body = async {
        sink.connected().await;
        let payload = json!({
            "type": "block_actions", "user": {"id": "U7"}, "team": {"id": "T1"},
            "channel": {"id": "C1"}, "container": {"message_ts": "5.1", "channel_id": "C1"},
            "actions": [{"type": "button", "value": "yes", "action_ts": "6.1"}],
        });
        fake.send_envelope("interactive", payload);
        let events = sink.stored(1).await;
        calls(&fake, "ack", 0, 1).await;
        events
    };
    let (events, _) = while_listening(&platform, &sink, None, body).await;
    assert_eq!(
        (events[0].id.as_str(), events[0].sender.id.as_str()),
        ("press:6.1:U7", "U7")
    );
}

#[tokio::test]
async fn shutdown_sends_the_close_frame() {
    let fake = fake(|_| {}).await;
    let sink = Sink::new();
    let platform = adapter(&fake);
    let ((), result) = while_listening(&platform, &sink, None, sink.connected()).await;
    assert_eq!(result, Ok(()));
    let closed = calls(&fake, "socket.close", 0, 1).await;
    assert_eq!(closed[0].body["end"], json!({"by": "client", "code": 1000}));
    assert_eq!(fake.connections(), 0);
}

#[tokio::test]
async fn rate_limited_opening_waits_for_the_named_delay() {
    let fake = fake(|_| {}).await;
    let limited = Fault::RateLimited {
        retry_after: 1.0,
        silent: false,
    };
    fake.faults().script("apps.connections.open", [limited]);
    let sink = Sink::new();
    let platform = adapter(&fake);
    let ((), result) = while_listening(&platform, &sink, None, sink.connected()).await;
    assert_eq!(result, Ok(()));
    let opened: Vec<Call> = fake.calls().of("apps.connections.open");
    assert!(Duration::from_millis(opened[1].at_ms - opened[0].at_ms) >= Duration::from_millis(990));
}

#[tokio::test]
async fn burst_is_acknowledged_at_the_first_delivery() {
    let fake = fake(|options| options.ack_timeout = NO_TIMEOUT).await;
    let sink = Sink::new();
    let platform = adapter_with(&fake, Timing::default(), ("xoxb-1", "xapp-1"));
    let body = async {
        sink.connected().await;
        for number in 0..500 {
            fake.say_dm("U1", &number.to_string());
        }
        calls(&fake, "ack", 0, 500).await;
    };
    let ((), result) = while_listening(&platform, &sink, None, body).await;
    assert_eq!(result, Ok(()));
    assert_eq!(sink.events().len(), 500);
    assert_eq!(fake.calls().of("envelope").len(), 500);
}

#[tokio::test]
async fn missed_answers_in_a_begun_thread_are_fetched() {
    let fake = fake(|options| options.redelivery = Vec::new()).await;
    let platform = adapter_with(&fake, Timing::default(), ("xoxb-1", "xapp-1"));
    let sink = Sink::new();
    let body = async {
        sink.connected().await;
        let ts = fake.mention("C1", "U1", "question");
        sink.stored(1).await;
        ts
    };
    let (ts, _) = while_listening(&platform, &sink, None, body).await;
    let missed = fake.say_in_thread("C1", "U1", &ts, "missed");
    calls(&fake, "unconnected", 1, 1).await;
    let cursor = Some(sink.cursor().to_string());
    let sink = Sink::new();
    let (events, _) = while_listening(&platform, &sink, cursor, sink.stored(1)).await;
    assert_eq!(events[0].id, missed);
}
