//! Ends of the connection, malformed input, refusals and downloads, against the fake.

use chrono::DateTime;
use deerflow_chat_platforms::common::Fault;
use deerflow_chat_platforms::wecom::WeComOptions;
use harness::clock::ManualClock;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::WeComFactory;
use super::test_bench::{Bench, LIMIT, delivery, live, text};
use crate::platform::*;

async fn bench() -> Bench {
    Bench::new(WeComOptions::default()).await
}

#[tokio::test]
async fn sending_without_a_connection_is_unavailable() {
    let bench = bench().await;
    let target = bench.connected(bench.asked()).await;
    let sent = bench.send(&text(&target, "x", &Value::Null)).await;
    assert!(
        matches!(sent, Err(PlatformError::Unavailable(_))),
        "{sent:?}"
    );
    let updated = bench.platform.update_live(&mut live(&target), "x").await;
    assert!(matches!(updated, Err(PlatformError::Unavailable(_))));
    assert_eq!(bench.shown(), Vec::<String>::new());
}

#[tokio::test]
async fn second_connection_displaces_the_first() {
    let bench = bench().await;
    let stop = CancellationToken::new();
    let listening = bench.platform.listen(&bench.inbox, None, stop);
    let displacing = async {
        while !bench.fake.displace() {
            tokio::task::yield_now().await;
        }
    };
    let both = async { tokio::join!(listening, displacing) };
    let (listened, ()) = tokio::time::timeout(LIMIT, both).await.unwrap();
    assert!(
        matches!(listened, Err(PlatformError::Displaced(_))),
        "{listened:?}"
    );
}

#[tokio::test]
async fn two_unanswered_pings_end_the_connection() {
    let bench = bench().await;
    bench.fake.ignore_pings(true);
    let listening = bench
        .platform
        .listen(&bench.inbox, None, CancellationToken::new());
    let pausing = async {
        bench.inbox.wait_connected(1).await;
        tokio::time::pause();
    };
    let both = async { tokio::join!(listening, pausing) };
    let (listened, ()) = both.await;
    let Err(PlatformError::Unavailable(text)) = listened else {
        panic!("{listened:?}");
    };
    assert!(text.contains("pings"), "{text}");
    assert_eq!(bench.fake.calls().of("ping").len(), 2);
}

#[tokio::test]
async fn lost_connection_fails_pending_calls() {
    let bench = bench().await;
    let (listened, sent) = bench
        .listening(async {
            let target = bench.asked().await;
            let fault = Fault::LoseReply;
            bench.fake.faults().script("aibot_respond_msg", [fault]);
            bench.send(&text(&target, "x", &Value::Null)).await
        })
        .await;
    assert!(
        matches!(sent, Err(PlatformError::Unavailable(_))),
        "{sent:?}"
    );
    assert!(
        matches!(listened, Err(PlatformError::Unavailable(_))),
        "{listened:?}"
    );
}

#[tokio::test]
async fn malformed_frames_do_not_end_the_connection() {
    let bench = bench().await;
    let number = json!({
        "cmd": "aibot_msg_callback",
        "headers": {"req_id": "r"},
        "body": {"msgid": 1, "from": {"userid": {}}},
    });
    bench
        .connected(async {
            for frame in [
                "",
                "{",
                "[]",
                "{\"cmd\":\"unknown\"}",
                "{\"cmd\":{},\"headers\":[]}",
                "{\"headers\":{\"req_id\":\"nobody asked\"},\"errcode\":\"x\"}",
                "{\"cmd\":\"aibot_event_callback\",\"headers\":{},\"body\":7}",
                &number.to_string(),
                &"[".repeat(10_000),
            ] {
                assert!(bench.fake.send_raw(frame));
            }
            assert!(bench.fake.send_binary(vec![0xff, 0]));
            let target = bench.asked().await;
            bench.send(&text(&target, "x", &Value::Null)).await.unwrap();
        })
        .await;
    assert_eq!(bench.shown(), ["Stream: x"]);
}

#[tokio::test]
async fn refused_events_are_offered_again_in_order() {
    let bench = bench().await;
    bench.inbox.refuse([SinkError::Full]);
    bench
        .connected(async {
            for text in ["a", "b", "c"] {
                bench.fake.say("zhangsan", None, text).unwrap();
            }
            bench.event(2).await;
        })
        .await;
    assert_eq!(bench.inbox.texts(), ["a", "b", "c"]);
}

#[tokio::test]
async fn refusals_have_their_meaning() {
    let bench = bench().await;
    bench
        .connected(async {
            let target = bench.asked().await;
            let refused = |code: i64| Fault::Answer {
                status: 200,
                body: json!({"errcode": code, "errmsg": "words"}),
                headers: Default::default(),
            };
            let mut results = Vec::new();
            for code in [45_009, 40_058, -1] {
                bench
                    .fake
                    .faults()
                    .script("aibot_respond_msg", [refused(code)]);
                let message = text(&target, "x", &Value::Null);
                // The same delivery, so that the request keeps its stream.
                let mut delivery = Delivery {
                    id: uuid::Uuid::from_u128(7),
                    ..delivery()
                };
                results.push(bench.platform.send(&message, None, &mut delivery).await);
            }
            assert!(matches!(
                results[0],
                Err(PlatformError::RateLimited { account: false, .. })
            ));
            assert!(matches!(results[1], Err(PlatformError::Refused(_))));
            assert!(matches!(results[2], Err(PlatformError::Unavailable(_))));
        })
        .await;
}

#[tokio::test]
async fn received_files_are_downloaded_and_decrypted() {
    let bench = bench().await;
    let content: Vec<u8> = (0..100_000_u32).map(|index| index as u8).collect();
    bench
        .connected(async {
            let offered = bench.fake.offer(&content);
            let said = json!({"msgtype": "file", "file": offered});
            bench.fake.say_content("zhangsan", None, said).unwrap();
            bench.event(0).await;
        })
        .await;
    let EventBody::Message(message) = bench.event(0).await.body else {
        panic!("no message");
    };
    let file = &message.files[0];
    assert_eq!(
        bench.platform.download(file, 100_000).await.unwrap(),
        content
    );
    let refused = async |change: &dyn Fn(&mut IncomingFile), max: u64| {
        let mut file = file.clone();
        change(&mut file);
        let error = bench.platform.download(&file, max).await.unwrap_err();
        assert!(matches!(error, PlatformError::Refused(_)), "{error}");
        assert!(!error.to_string().contains("sign="), "{error}");
    };
    refused(&|_| {}, 99_999).await;
    refused(&|file| file.reference["aeskey"] = json!("x"), 100_000).await;
    refused(
        &|file| file.reference["aeskey"] = json!("A".repeat(43)),
        100_000,
    )
    .await;
    let gone = format!("{}/files/gone?sign=abc", bench.fake.base());
    refused(&|file| file.reference["url"] = json!(gone), 100_000).await;
    for inside in [
        "http://10.0.0.1/a",
        "http://169.254.169.254/",
        "file:///etc/passwd",
        "",
    ] {
        refused(&|file| file.reference["url"] = json!(inside), 100_000).await;
    }
}

#[tokio::test]
async fn settings_name_what_is_missing() {
    let build = |settings: Value| {
        let Value::Object(settings) = settings else {
            panic!("settings");
        };
        let context = PlatformContext {
            http: reqwest::Client::builder().build().unwrap(),
            clock: std::sync::Arc::new(ManualClock::starting_at(DateTime::UNIX_EPOCH)),
        };
        WeComFactory
            .build(&Settings(settings), &context)
            .map_err(|error| error.key)
    };
    assert_eq!(build(json!({})).unwrap_err(), "bot_id");
    assert_eq!(build(json!({"bot_id": "b"})).unwrap_err(), "bot_secret");
    let plain = json!({"bot_id": "b", "bot_secret": "s", "ws_url": "ws://example.com"});
    assert_eq!(build(plain).unwrap_err(), "ws_url");
    let platform = build(json!({"bot_id": "b", "bot_secret": "s"})).unwrap();
    assert_eq!(platform.identify().await.unwrap().account, "b");
}
