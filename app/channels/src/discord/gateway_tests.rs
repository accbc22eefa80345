//! Tests of listening, against the fake platform.

use std::time::Duration;

use deerflow_chat_platforms::common::Fault;
use deerflow_chat_platforms::discord::{CHANNEL, DIRECT, DiscordOptions, PersonMessage};
use serde_json::{Value, json};

use super::fixture::{Fixture, LIMIT};
use crate::platform::{ChatKind, CommandHelp, EventBody, Platform, PlatformError, Target};

#[tokio::test]
async fn events_are_stored_in_order_with_the_cursor() {
    let fixture = Fixture::start().await;
    let controls = fixture.fake.controls();
    let (result, ()) = fixture
        .listen_during(async {
            fixture.wait_connected(1).await;
            for number in 0..50 {
                let channel = if number % 2 == 0 { CHANNEL } else { DIRECT };
                controls.say(channel, &format!("text {number}"));
            }
            fixture.sink.wait_events(50).await;
        })
        .await;
    result.unwrap();
    let expected: Vec<String> = (0..50).map(|number| format!("text {number}")).collect();
    assert_eq!(fixture.sink.texts(), expected);
    let events = fixture.sink.events();
    assert_eq!(events[0].chat.kind, ChatKind::Group);
    assert_eq!(events[1].chat.kind, ChatKind::Direct);
    // READY, the guild and the messages.
    let cursor: Value = serde_json::from_str(&fixture.sink.cursor().unwrap()).unwrap();
    assert_eq!(cursor["seq"], 52);
    fixture.wait_call("gateway close", 1).await;
    let close = &fixture.fake.calls().of("gateway close")[0];
    assert_eq!(close.body, json!({"code": 4000}));
    assert_eq!(controls.violations(), Vec::<String>::new());
    assert_eq!(fixture.calls("channel"), 0);
}

#[tokio::test]
async fn restart_resumes_behind_the_stored_cursor() {
    let mut fixture = Fixture::start().await;
    let (result, ()) = fixture
        .listen_during(async {
            fixture.wait_connected(1).await;
            fixture.fake.controls().say(CHANNEL, "first");
            fixture.sink.wait_events(1).await;
        })
        .await;
    result.unwrap();
    fixture.fake.controls().say(CHANNEL, "second");
    fixture.fake.controls().say(DIRECT, "third");
    fixture.restart();
    let (result, _) = fixture.listen_during(fixture.sink.wait_events(3)).await;
    result.unwrap();
    assert_eq!(fixture.sink.texts(), ["first", "second", "third"]);
    assert_eq!(fixture.calls("gateway identify"), 1);
    let resume = &fixture.fake.calls().of("gateway resume")[0];
    assert_eq!((resume.error, &resume.body["seq"]), (0, &json!(3)));
}

#[tokio::test]
async fn ended_connections_are_resumed_without_loss() {
    let fixture = Fixture::start().await;
    let controls = fixture.fake.controls();
    let (result, ()) = fixture
        .listen_during(async {
            let ends: [&dyn Fn(); 4] = [
                &|| controls.reconnect(),
                &|| controls.drop_connections(),
                &|| controls.invalidate(true),
                &|| controls.close(4000),
            ];
            for (number, end) in (1_usize..).zip(ends) {
                fixture.wait_connected(number).await;
                end();
                controls.say(CHANNEL, &format!("text {number}"));
                fixture.sink.wait_events(number).await;
            }
            fixture.wait_connected(5).await;
        })
        .await;
    result.unwrap();
    assert_eq!(
        fixture.sink.texts(),
        ["text 1", "text 2", "text 3", "text 4"]
    );
    assert_eq!(fixture.calls("gateway identify"), 1);
    assert_eq!(fixture.calls("gateway resume"), 4);
}

#[tokio::test]
async fn lost_session_is_replaced_and_messages_fetched() {
    let mut fixture = Fixture::start().await;
    let (result, ()) = fixture
        .listen_during(async {
            fixture.wait_connected(1).await;
            fixture.fake.controls().say(CHANNEL, "first");
            fixture.fake.controls().say(DIRECT, "direct");
            fixture.sink.wait_events(2).await;
        })
        .await;
    result.unwrap();
    let controls = fixture.fake.controls();
    controls.forget_sessions();
    for number in 0..120 {
        controls.say(CHANNEL, &format!("missed {number}"));
    }
    controls.say(DIRECT, "direct missed");
    fixture.restart();
    let (result, ()) = fixture
        .listen_during(async {
            fixture.wait_connected(1).await;
            fixture.sink.wait_events(123).await;
            fixture.fake.controls().say(CHANNEL, "later");
            fixture.sink.wait_events(124).await;
        })
        .await;
    result.unwrap();
    let texts = fixture.sink.texts();
    assert_eq!(texts[2], "direct missed");
    let expected: Vec<String> = (0..120).map(|number| format!("missed {number}")).collect();
    assert_eq!(texts[3..123], expected);
    assert_eq!(texts[123], "later");
    let kinds: Vec<ChatKind> = fixture
        .sink
        .events()
        .iter()
        .map(|event| event.chat.kind)
        .collect();
    assert_eq!((kinds[2], kinds[3]), (ChatKind::Direct, ChatKind::Group));
    assert_eq!(fixture.calls("gateway identify"), 2);
}

#[tokio::test]
async fn silent_socket_is_replaced_by_a_resumed_one() {
    let options = DiscordOptions {
        heartbeat: Duration::from_millis(500),
        ..DiscordOptions::default()
    };
    let fixture = Fixture::with(options, &[]).await;
    let controls = fixture.fake.controls();
    let (result, ()) = fixture
        .listen_during(async {
            fixture.wait_connected(1).await;
            fixture.wait_call("gateway heartbeat", 3).await;
            controls.silence(true);
            controls.say(CHANNEL, "unheard");
            fixture.sink.wait_events(1).await;
        })
        .await;
    result.unwrap();
    assert_eq!(fixture.sink.texts(), ["unheard"]);
    assert_eq!(fixture.calls("gateway resume"), 1);
    assert_eq!(fixture.calls("gateway identify"), 1);
    let close = &fixture.fake.calls().of("gateway close")[0];
    assert_eq!(close.body, json!({"code": 4000}));
}

#[tokio::test]
async fn final_refusals_name_the_remedy() {
    let without_intent = DiscordOptions {
        message_content: false,
        ..DiscordOptions::default()
    };
    let fixture = Fixture::with(without_intent, &[]).await;
    let error = fixture.listen_to_the_end().await.unwrap_err();
    let PlatformError::Rejected(words) = error else {
        panic!("{error:?}");
    };
    assert!(words.contains("Message Content Intent"), "{words}");
    let identity = fixture.platform.identify().await.unwrap();
    assert_eq!(identity.account, "1");
    assert!(identity.warnings[0].contains("Message Content Intent"));
}

#[tokio::test]
async fn spent_session_starts_are_not_exceeded() {
    let options = DiscordOptions {
        identifies: 0,
        ..DiscordOptions::default()
    };
    let fixture = Fixture::with(options, &[]).await;
    let error = fixture.listen_to_the_end().await.unwrap_err();
    assert_eq!(
        error,
        PlatformError::RateLimited {
            retry_after: Duration::from_secs(14_400),
            account: true
        }
    );
    assert_eq!(fixture.calls("gateway identify"), 0);
}

#[tokio::test]
async fn malformed_frames_do_not_end_the_connection() {
    let fixture = Fixture::start().await;
    let controls = fixture.fake.controls();
    let (result, ()) = fixture
        .listen_during(async {
            fixture.wait_connected(1).await;
            for text in [
                "",
                "{",
                "null",
                "[[[[",
                r#"{"op":0}"#,
                r#"{"op":"x","d":7}"#,
            ] {
                controls.raw(text);
            }
            controls.raw(&format!("{}1{}", "[".repeat(5000), "]".repeat(5000)));
            for data in [json!(null), json!(7), json!({"id": 5}), json!([[]])] {
                controls.dispatch("MESSAGE_CREATE", &data);
                controls.dispatch("INTERACTION_CREATE", &data);
                controls.dispatch("GUILD_CREATE", &data);
            }
            controls.dispatch("FUTURE_EVENT", &json!({"a": 1}));
            controls.say(CHANNEL, "after");
            fixture.sink.wait_events(1).await;
        })
        .await;
    result.unwrap();
    assert_eq!(fixture.sink.texts(), ["after"]);
    assert_eq!(fixture.calls("gateway resume"), 0);
}

#[tokio::test]
async fn thread_mode_answers_in_the_thread_of_the_message() {
    let settings = [("thread_mode", json!(true))];
    let fixture = Fixture::with(DiscordOptions::default(), &settings).await;
    let controls = fixture.fake.controls();
    let (result, ()) = fixture
        .listen_during(async {
            fixture.wait_connected(1).await;
            let message = controls.say(CHANNEL, "<@1> question");
            fixture.sink.wait_events(1).await;
            let event = fixture.sink.events().remove(0);
            assert_eq!(event.chat.id, message.to_string());
            assert_eq!(event.chat.parent, Some(CHANNEL.to_string()));
            let target = Target::of(&event);
            let answer = super::fixture::text(target, "answer");
            let mut delivery = super::fixture::delivery(1);
            let sent = fixture.platform.send(&answer, None, &mut delivery).await;
            assert_eq!(sent.unwrap().ids.len(), 1);
            assert_eq!(controls.texts(message), ["answer"]);
            assert_eq!(fixture.calls("create_thread"), 1);
            controls.write(&PersonMessage::new(message, "more"));
            fixture.sink.wait_events(2).await;
        })
        .await;
    result.unwrap();
    let events = fixture.sink.events();
    assert_eq!(events[0].chat, events[1].chat);
    let EventBody::Message(more) = &events[1].body else {
        panic!("a message");
    };
    assert!(more.addressed);
    assert_eq!(controls.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn session_that_cannot_be_resumed_is_replaced() {
    let mut fixture = Fixture::start().await;
    let (result, ()) = fixture.listen_during(fixture.wait_connected(1)).await;
    result.unwrap();
    fixture.restart();
    let closed = vec![Fault::Drop; 10];
    fixture.fake.faults().script("gateway resume", closed);
    for _ in 0..3 {
        let error = fixture.listen_to_the_end().await.unwrap_err();
        assert!(matches!(error, PlatformError::Unavailable(_)), "{error:?}");
    }
    let (result, ()) = fixture.listen_during(fixture.wait_connected(2)).await;
    result.unwrap();
    assert_eq!(fixture.calls("gateway resume"), 3);
    assert_eq!(fixture.calls("gateway identify"), 2);
}

#[tokio::test]
async fn listed_command_is_stored_and_answered() {
    let fixture = Fixture::start().await;
    let controls = fixture.fake.controls();
    let help = CommandHelp {
        name: "status",
        description: "Shows the state",
    };
    fixture.platform.register_commands(&[help]).await.unwrap();
    assert_eq!(
        fixture.fake.calls().of("commands")[0].body[0]["name"],
        "status"
    );
    let (result, ()) = fixture
        .listen_during(async {
            fixture.wait_connected(1).await;
            controls.command(CHANNEL, "status", "now");
            fixture.wait_call("callback", 1).await;
        })
        .await;
    result.unwrap();
    assert_eq!(fixture.sink.texts(), ["/status now"]);
    let callback = &fixture.fake.calls().of("callback")[0];
    assert_eq!((callback.error, &callback.body["type"]), (0, &json!(4)));
    assert_eq!(callback.body["data"]["flags"], 64);
}

#[tokio::test]
async fn unreachable_resume_address_falls_back_to_the_gateway() {
    let mut fixture = Fixture::start().await;
    let (result, ()) = fixture.listen_during(fixture.wait_connected(1)).await;
    result.unwrap();
    let cursor = fixture.sink.cursor().unwrap();
    let mut cursor: Value = serde_json::from_str(&cursor).unwrap();
    cursor["resume_gateway_url"] = json!("ws://127.0.0.1:9");
    fixture
        .fake
        .faults()
        .script("gateway_bot", [Fault::Delay { ms: 1 }]);
    fixture.restart();
    let controls = fixture.fake.controls();
    controls.say(CHANNEL, "missed");
    let stop = tokio_util::sync::CancellationToken::new();
    let sink = &fixture.sink;
    let listening = fixture
        .platform
        .listen(sink, Some(cursor.to_string()), stop.clone());
    let scenario = async {
        sink.wait_events(1).await;
        stop.cancel();
    };
    let (result, ()) = tokio::time::timeout(LIMIT, async { tokio::join!(listening, scenario) })
        .await
        .unwrap();
    result.unwrap();
    assert_eq!(fixture.calls("gateway resume"), 1);
    assert_eq!(fixture.calls("gateway identify"), 1);
}
