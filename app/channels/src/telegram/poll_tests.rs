//! Tests of polling against the fake.

use std::sync::Arc;

use deerflow_chat_platforms::common::Fault;
use deerflow_chat_platforms::telegram::{Post, PostedFile};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::platform::{EventBody, Platform, PlatformError};

use crate::testkit::RecordingSink;

use super::test_bench::{fake, fake_with, platform, platform_with, soon};

/// Polls until the condition holds, then stops and returns the result of the listener.
async fn listen_until(
    platform: Arc<dyn Platform>,
    sink: &RecordingSink,
    cursor: Option<&str>,
    condition: impl FnMut(&RecordingSink) -> bool,
) -> Result<(), PlatformError> {
    let stop = CancellationToken::new();
    let listening = platform.listen(sink, cursor.map(str::to_owned), stop.clone());
    tokio::pin!(listening);
    soon(async {
        tokio::select! {
            result = &mut listening => return result,
            () = sink.wait_until(condition) => stop.cancel(),
        }
        listening.await
    })
    .await
}

fn answer(status: u16, description: &str) -> Fault {
    Fault::Answer {
        status,
        body: json!({"ok": false, "error_code": status, "description": description}),
        headers: std::collections::HashMap::new(),
    }
}

#[tokio::test]
async fn updates_are_stored_then_confirmed_at_stop() {
    let fake = fake().await;
    fake.say(42, 42, "one");
    fake.say(42, 42, "two");
    let sink = RecordingSink::default();
    let result = listen_until(platform(&fake), &sink, None, |sink| {
        sink.texts().len() == 2 && sink.connections() == 1
    });
    assert_eq!(result.await, Ok(()));
    assert_eq!(sink.texts(), ["one", "two"]);
    assert_eq!(sink.cursor().as_deref(), Some("102"));
    assert_eq!(fake.unconfirmed(), 0);
    let webhook = fake.calls().of("deleteWebhook");
    assert_eq!(webhook[0].body, json!({"drop_pending_updates": false}));
}

#[tokio::test]
async fn second_poller_displaces_the_first() {
    let fake = fake().await;
    let (first, second) = (RecordingSink::default(), RecordingSink::default());
    let (older, newer) = (platform(&fake), platform(&fake));
    let stop = CancellationToken::new();
    let (ended, last) = soon(async {
        tokio::join!(
            async {
                let result = older.listen(&first, None, stop.clone()).await;
                stop.cancel();
                result
            },
            async {
                first.wait_until(|sink| sink.connections() == 1).await;
                // The first holds its long poll when the second begins.
                fake.calls()
                    .wait_for(|calls| (!calls.is_empty()).then_some(()))
                    .await;
                newer.listen(&second, None, stop.clone()).await
            }
        )
    })
    .await;
    let results = [ended, last];
    assert!(
        results
            .iter()
            .any(|result| matches!(result, Err(PlatformError::Displaced(_)))),
        "{results:?}"
    );
}

#[tokio::test]
async fn stop_after_a_takeover_does_not_end_the_other_poll() {
    let fake = fake().await;
    let sink = RecordingSink::default();
    let platform = platform(&fake);
    let stop = CancellationToken::new();
    // The answer of the long poll is on its way when the listener stops.
    let conflict = answer(409, "Conflict: terminated by other getUpdates request");
    let nothing = Fault::Delay { ms: 0 };
    fake.faults().script("getUpdates", [nothing, conflict]);
    fake.say(42, 42, "one");
    let stopping = async {
        fake.calls()
            .wait_for(|calls| calls.iter().any(|call| call.error == 409).then_some(()))
            .await;
        stop.cancel();
    };
    let listening = platform.listen(&sink, None, stop.clone());
    let (result, ()) = soon(async { tokio::join!(listening, stopping) }).await;
    assert!(
        matches!(result, Ok(()) | Err(PlatformError::Displaced(_))),
        "{result:?}"
    );
    assert_eq!(fake.calls().of("getUpdates").len(), 2);
}

#[tokio::test]
async fn active_webhook_is_deleted_without_dropping() {
    let fake = fake_with(|options| options.webhook = Some("https://x.invalid".to_owned())).await;
    fake.say(42, 42, "one");
    let sink = RecordingSink::default();
    let result = listen_until(platform(&fake), &sink, None, |sink| {
        !sink.texts().is_empty()
    });
    assert_eq!(result.await, Ok(()));
    assert_eq!(sink.texts(), ["one"]);
}

#[tokio::test]
async fn webhook_conflict_while_polling_deletes_it_again() {
    let fake = fake().await;
    let conflict = "Conflict: can't use getUpdates method while webhook is active";
    fake.faults().script("getUpdates", [answer(409, conflict)]);
    fake.say(42, 42, "one");
    let sink = RecordingSink::default();
    let result = listen_until(platform(&fake), &sink, None, |sink| {
        !sink.texts().is_empty()
    });
    assert_eq!(result.await, Ok(()));
    assert_eq!(fake.calls().of("deleteWebhook").len(), 2);
}

#[tokio::test]
async fn bad_token_is_rejected_without_retry() {
    let fake = fake().await;
    for token in ["999:wrong", "nonsense"] {
        fake.calls().clear();
        let platform = platform_with(&fake, json!({"bot_token": token}));
        let sink = RecordingSink::default();
        let result = soon(platform.listen(&sink, None, CancellationToken::new())).await;
        assert!(
            matches!(result, Err(PlatformError::Rejected(_))),
            "{result:?}"
        );
        assert!(!format!("{result:?} {platform:?}").contains(token));
        assert_eq!(fake.calls().all().len(), 1);
        assert_eq!(sink.connections(), 0);
    }
}

#[tokio::test]
async fn lost_replies_and_rate_limits_lose_no_update() {
    let fake = fake().await;
    let limit = Fault::RateLimited {
        retry_after: 1.0,
        silent: false,
    };
    fake.faults()
        .script("getUpdates", [Fault::LoseReply, limit]);
    fake.say(42, 42, "one");
    let sink = RecordingSink::default();
    let result = listen_until(platform(&fake), &sink, None, |sink| {
        !sink.texts().is_empty()
    });
    assert_eq!(result.await, Ok(()));
    assert_eq!(sink.texts(), ["one"]);
}

#[tokio::test]
async fn unreachable_server_ends_the_connection() {
    let fake = fake().await;
    let platform = platform(&fake);
    drop(fake);
    let sink = RecordingSink::default();
    let result = listen_until(platform, &sink, None, |_| false).await;
    assert!(
        matches!(result, Err(PlatformError::Unavailable(_))),
        "{result:?}"
    );
}

#[tokio::test]
async fn hostile_updates_do_not_end_the_connection() {
    let fake = fake().await;
    for update in [
        json!({"message": 5}),
        json!({"message": {"message_id": "x", "chat": {"id": [1]}}}),
        json!({"update_id": "x"}),
        json!(null),
        json!({"callback_query": {"id": 1}}),
    ] {
        fake.raw_update(update);
    }
    fake.say(42, 42, "after");
    let sink = RecordingSink::default();
    let result = listen_until(platform(&fake), &sink, None, |sink| {
        !sink.texts().is_empty()
    });
    assert_eq!(result.await, Ok(()));
    assert_eq!(sink.texts(), ["after"]);
    assert_eq!(fake.unconfirmed(), 0);
}

#[tokio::test]
async fn groups_topics_replies_and_albums_are_delivered() {
    let fake = fake().await;
    let topic = fake.add_topic(-1001);
    let post = |text: &str| Post {
        text: text.to_owned(),
        ..Post::default()
    };
    fake.post(
        -1001,
        42,
        Post {
            topic: Some(topic),
            ..post("@deer_bot in topic")
        },
    );
    let root = fake.say(-1002, 42, "@deer_bot root");
    fake.reply(-1002, 42, root, "/new@deer_bot");
    fake.say(-1002, 42, "unaddressed");
    for name in ["a.txt", "b.txt"] {
        fake.post(
            42,
            42,
            Post {
                album: Some("album".to_owned()),
                file: Some(PostedFile::document(name, "text/plain", "content")),
                ..Post::default()
            },
        );
    }
    fake.edit(-1002, root, "changed");
    let sink = RecordingSink::default();
    let result = listen_until(platform(&fake), &sink, None, |sink| {
        sink.events().len() == 5
    });
    assert_eq!(result.await, Ok(()));
    let messages: Vec<_> = sink
        .events()
        .into_iter()
        .map(|event| match event.body {
            EventBody::Message(message) => message,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(messages[0].text, "in topic");
    assert_eq!(messages[0].topic, Some(topic.to_string()));
    assert_eq!(messages[0].reply_to, None);
    assert_eq!(
        (messages[1].text.as_str(), &messages[1].topic),
        ("root", &None)
    );
    assert_eq!(messages[2].text, "/new");
    assert_eq!(messages[2].reply_to, Some(root.to_string()));
    assert_eq!(messages[2].topic, None);
    assert!(messages[..3].iter().all(|message| message.addressed));
    assert_eq!(messages[3].album.as_deref(), Some("album"));
    assert_eq!(messages[4].files[0].name.as_deref(), Some("b.txt"));
}
