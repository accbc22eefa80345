//! Sending through the live connection, against the fake.

use deerflow_chat_platforms::common::Fault;
use deerflow_chat_platforms::wecom::WeComOptions;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::test_bench::{Bench, delivery, live, text};

async fn bench() -> Bench {
    Bench::new(WeComOptions::default()).await
}

#[tokio::test]
async fn answer_streams_and_finishes_in_one_message() {
    let bench = bench().await;
    bench
        .connected(async {
            let target = bench.asked().await;
            let mut reply = live(&target);
            for so_far in ["He", "**Hel", "**Hello** you"] {
                bench
                    .platform
                    .update_live(&mut reply, so_far)
                    .await
                    .unwrap();
            }
            assert_eq!(bench.shown(), ["Stream: **Hello** you…"]);
            let sent = bench
                .send(&text(&target, "**Hello** you.", &reply.state))
                .await
                .unwrap();
            assert_eq!(sent.ids, [reply.key.simple().to_string()]);
        })
        .await;
    assert_eq!(bench.shown(), ["Stream: **Hello** you."]);
}

#[tokio::test]
async fn first_part_answers_and_the_next_are_pushed() {
    let bench = bench().await;
    bench
        .connected(async {
            let target = bench.asked().await;
            for part in ["one", "two", "three"] {
                bench
                    .send(&text(&target, part, &Value::Null))
                    .await
                    .unwrap();
            }
        })
        .await;
    assert_eq!(
        bench.shown(),
        ["Stream: one", "Markdown: two", "Markdown: three"]
    );
}

#[tokio::test]
async fn group_answers_go_to_the_group() {
    let bench = bench().await;
    bench
        .connected(async {
            bench.fake.say("zhangsan", Some("wr1"), "@Bot hi").unwrap();
            let event = bench.event(0).await;
            let target = crate::platform::Target::of(&event);
            for part in ["one", "two"] {
                bench
                    .send(&text(&target, part, &Value::Null))
                    .await
                    .unwrap();
            }
        })
        .await;
    let chats: Vec<String> = bench
        .fake
        .shown()
        .into_iter()
        .map(|shown| shown.chat)
        .collect();
    assert_eq!(chats, ["wr1", "wr1"]);
}

#[tokio::test]
async fn stream_past_nine_minutes_ends_with_words() {
    let bench = bench().await;
    bench
        .connected(async {
            let target = bench.asked().await;
            let mut reply = live(&target);
            for _ in 0..20 {
                bench
                    .platform
                    .update_live(&mut reply, "so far")
                    .await
                    .unwrap();
                bench.advance(30);
            }
            let shown = bench.shown();
            assert_eq!(shown.len(), 1);
            assert!(shown[0].starts_with("Stream: so far\n\nThe answer takes longer"));
            assert!(!shown[0].ends_with('…'));
            bench
                .send(&text(&target, "the answer", &reply.state))
                .await
                .unwrap();
        })
        .await;
    assert_eq!(bench.shown()[1..], ["Markdown: the answer"]);
}

#[tokio::test]
async fn final_text_past_nine_minutes_is_pushed() {
    let bench = bench().await;
    bench
        .connected(async {
            let target = bench.asked().await;
            let mut reply = live(&target);
            for _ in 0..9 {
                bench
                    .platform
                    .update_live(&mut reply, "so far")
                    .await
                    .unwrap();
                bench.advance(60);
            }
            bench
                .send(&text(&target, "the answer", &reply.state))
                .await
                .unwrap();
        })
        .await;
    let shown = bench.shown();
    assert!(
        shown[0].starts_with("Stream: The answer takes longer"),
        "{shown:?}"
    );
    assert_eq!(shown[1..], ["Markdown: the answer"]);
}

#[tokio::test]
async fn expired_stream_is_followed_by_a_new_message() {
    for silent_expiry in [false, true] {
        let bench = Bench::new(WeComOptions {
            silent_expiry,
            ..WeComOptions::default()
        })
        .await;
        bench
            .connected(async {
                let target = bench.asked().await;
                let mut reply = live(&target);
                bench
                    .platform
                    .update_live(&mut reply, "so far")
                    .await
                    .unwrap();
                if silent_expiry {
                    bench.advance(6 * 60);
                } else {
                    // The adapter does not know that the stream has expired.
                    bench.fake.advance(std::time::Duration::from_secs(6 * 60));
                }
                bench
                    .platform
                    .update_live(&mut reply, "more")
                    .await
                    .unwrap();
                bench
                    .platform
                    .update_live(&mut reply, "more and more")
                    .await
                    .unwrap();
                bench
                    .send(&text(&target, "the answer", &reply.state))
                    .await
                    .unwrap();
            })
            .await;
        assert_eq!(bench.shown(), ["Stream: so far…", "Markdown: the answer"]);
    }
}

#[tokio::test]
async fn request_of_a_former_connection_is_answered_by_a_new_message() {
    let bench = bench().await;
    let mut reply = None;
    let target = bench
        .connected(async {
            let target = bench.asked().await;
            let mut begun = live(&target);
            bench
                .platform
                .update_live(&mut begun, "so far")
                .await
                .unwrap();
            reply = Some(begun);
            target
        })
        .await;
    let mut reply = reply.unwrap();
    bench
        .connected(async {
            bench
                .platform
                .update_live(&mut reply, "more")
                .await
                .unwrap();
            bench
                .send(&text(&target, "the answer", &reply.state))
                .await
                .unwrap();
            bench
                .send(&text(&target, "another", &Value::Null))
                .await
                .unwrap();
        })
        .await;
    assert_eq!(
        bench.shown(),
        [
            "Stream: so far…",
            "Markdown: the answer",
            "Markdown: another"
        ]
    );
    let calls = bench.fake.calls().all();
    assert!(calls.iter().all(|call| call.error == 0), "{calls:?}");
}

#[tokio::test]
async fn unknown_request_is_answered_by_a_new_message() {
    let bench = bench().await;
    bench
        .connected(async {
            let mut target = bench.asked().await;
            target.context["req_id"] = json!("forgotten");
            bench
                .send(&text(&target, "the answer", &Value::Null))
                .await
                .unwrap();
        })
        .await;
    assert_eq!(bench.shown(), ["Markdown: the answer"]);
}

#[tokio::test]
async fn frames_of_one_request_do_not_overlap() {
    let bench = bench().await;
    bench
        .connected(async {
            let target = bench.asked().await;
            let mut reply = live(&target);
            bench.platform.update_live(&mut reply, "a").await.unwrap();
            bench
                .fake
                .faults()
                .script("aibot_respond_msg", [Fault::Delay { ms: 100 }]);
            let mut again = reply.clone();
            let last = text(&target, "abc", &reply.state);
            let (updated, repeated, sent) = tokio::join!(
                bench.platform.update_live(&mut reply, "ab"),
                bench.platform.update_live(&mut again, "ab"),
                bench.send(&last),
            );
            assert_eq!((updated, repeated), (Ok(()), Ok(())));
            sent.unwrap();
        })
        .await;
    assert_eq!(bench.shown(), ["Stream: abc"]);
    let calls = bench.fake.calls().all();
    assert!(calls.iter().all(|call| call.error == 0), "{calls:?}");
}

#[tokio::test]
async fn stop_waits_for_the_answers_to_sent_frames() {
    let bench = bench().await;
    let (sender, target) = oneshot::channel();
    let connected = bench.connected(async {
        let asked = bench.asked().await;
        let faults = bench.fake.faults();
        faults.script("aibot_respond_msg", [Fault::Delay { ms: 100 }]);
        sender.send(asked).unwrap();
        while faults.remaining("aibot_respond_msg") > 0 {
            tokio::task::yield_now().await;
        }
    });
    let sending = async {
        let message = text(&target.await.unwrap(), "the answer", &Value::Null);
        bench.send(&message).await
    };
    let ((), sent) = tokio::join!(connected, sending);
    assert!(sent.is_ok(), "{sent:?}");
    assert_eq!(bench.shown(), ["Stream: the answer"]);
}

#[tokio::test]
async fn repeated_final_text_is_shown_once() {
    let bench = bench().await;
    bench
        .connected(async {
            let target = bench.asked().await;
            let message = text(&target, "the answer", &Value::Null);
            let mut delivery = delivery();
            for attempt in 1..=3 {
                delivery.attempt = attempt;
                bench
                    .platform
                    .send(&message, None, &mut delivery)
                    .await
                    .unwrap();
            }
        })
        .await;
    assert_eq!(bench.shown(), ["Stream: the answer"]);
}
