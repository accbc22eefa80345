//! Promises of listening.

use tokio_util::sync::CancellationToken;

use super::PlatformBench;
use super::session::{listen_to_the_end, until, while_listening, within};
use crate::platform::{ChatKind, EventBody, PlatformError, SinkError};
use crate::testkit::RecordingSink;

/// A message arrives with its sender, chat and text, from a direct chat and from a group.
pub async fn message_arrives_complete<B: PlatformBench>(bench: B) {
    let sink = RecordingSink::default();
    let mut kinds = vec![ChatKind::Direct];
    kinds.extend(bench.has_groups().then_some(ChatKind::Group));
    let events = while_listening(&*bench.adapter(), &sink, async {
        sink.wait_connected(1).await;
        for (number, kind) in (1..).zip(&kinds) {
            bench.say(*kind, "Grüße 😀 <b>&");
            sink.wait_events(number).await;
        }
        sink.events()
    })
    .await;
    let found: Vec<ChatKind> = events.iter().map(|event| event.chat.kind).collect();
    assert_eq!(found, kinds);
    for event in &events {
        assert_eq!(event.sender.id, B::PERSON);
        assert!(!event.id.is_empty() && !event.chat.id.is_empty());
        let EventBody::Message(message) = &event.body else {
            panic!("not a message: {event:?}");
        };
        assert_eq!(message.text, "Grüße 😀 <b>&");
        assert!(message.addressed && !message.cut && message.files.is_empty());
    }
}

/// A message that is delivered again, before and after it was stored, has the same key.
pub async fn redelivered_message_keeps_its_key<B: PlatformBench>(bench: B) {
    let sink = RecordingSink::refusing([SinkError::Unavailable]);
    while_listening(&*bench.adapter(), &sink, async {
        sink.wait_connected(1).await;
        bench.say(ChatKind::Direct, "one");
        sink.wait_events(1).await;
        until(|| bench.acknowledged() != Some(0)).await;
        let offered = sink.offered();
        if bench.redeliver() {
            sink.wait_until(|sink| sink.offered() > offered).await;
        }
        bench.say(ChatKind::Direct, "two");
        sink.wait_until(|sink| sink.texts().contains(&"two".to_owned()))
            .await;
    })
    .await;
    assert_eq!(sink.texts(), ["one", "two"]);
}

/// Nothing is acknowledged while the store refuses. What was refused arrives afterwards.
pub async fn acknowledgement_follows_the_commit<B: PlatformBench>(bench: B) {
    let before = bench.acknowledged();
    let sink = RecordingSink::default();
    sink.close(SinkError::Unavailable);
    while_listening(&*bench.adapter(), &sink, async {
        sink.wait_connected(1).await;
        bench.say(ChatKind::Direct, "one");
        sink.wait_until(|sink| sink.offered() > 0).await;
        sink.close(SinkError::Full);
        sink.wait_until(|sink| sink.offered() > 1).await;
        assert_eq!(bench.acknowledged(), before);
        sink.close(None);
        sink.wait_events(1).await;
    })
    .await;
    assert_eq!(sink.texts(), ["one"]);
    assert!(bench.acknowledged() > before || before.is_none());
}

/// A listener whose node lost the account ends, and acknowledges nothing.
pub async fn fenced_listener_acknowledges_nothing<B: PlatformBench>(bench: B) {
    let sink = RecordingSink::default();
    sink.close(SinkError::Fenced);
    let before = bench.acknowledged();
    let platform = bench.adapter();
    let saying = async {
        sink.wait_connected(1).await;
        bench.say(ChatKind::Direct, "one");
    };
    let listening = listen_to_the_end(&*platform, &sink);
    let (error, ()) = tokio::join!(listening, saying);
    assert_eq!(error, PlatformError::Sink(SinkError::Fenced));
    assert_eq!(bench.acknowledged(), before);
    assert!(sink.events().is_empty());
}

/// A broken connection is replaced. A platform that redelivers loses nothing by it.
pub async fn broken_connection_loses_nothing<B: PlatformBench>(bench: B) {
    let sink = RecordingSink::default();
    let platform = bench.adapter();
    while_listening(&*platform, &sink, async {
        sink.wait_connected(1).await;
        for number in 1..=2 {
            bench.say(ChatKind::Direct, &format!("before {number}"));
            sink.wait_events(2 * number - 1).await;
            let connections = sink.connections();
            bench.disconnect();
            if !platform.abilities().redelivers {
                sink.wait_until(|sink| sink.connections() > connections)
                    .await;
            }
            bench.say(ChatKind::Direct, &format!("after {number}"));
            sink.wait_events(2 * number).await;
        }
    })
    .await;
    let expected = (1..=2).flat_map(|n| [format!("before {n}"), format!("after {n}")]);
    assert_eq!(sink.texts(), expected.collect::<Vec<_>>());
}

/// A new process continues behind the stored cursor: nothing that is stored becomes another
/// message, and a platform that redelivers loses nothing.
pub async fn restart_continues_behind_the_cursor<B: PlatformBench>(bench: B) {
    let sink = RecordingSink::default();
    while_listening(&*bench.adapter(), &sink, async {
        sink.wait_connected(1).await;
        bench.say(ChatKind::Direct, "stored");
        sink.wait_events(1).await;
    })
    .await;
    let platform = bench.adapter();
    let redelivers = platform.abilities().redelivers;
    let connections = sink.connections();
    if redelivers {
        bench.say(ChatKind::Direct, "missed");
    }
    while_listening(&*platform, &sink, async {
        if !redelivers {
            sink.wait_until(|sink| sink.connections() > connections)
                .await;
            bench.say(ChatKind::Direct, "missed");
        }
        sink.wait_events(2).await;
    })
    .await;
    assert_eq!(sink.texts(), ["stored", "missed"]);
}

/// Refused credentials are a final error that does not contain them.
pub async fn invalid_credentials_are_final<B: PlatformBench>(bench: B) {
    let (platform, secret) = bench.adapter_with_wrong_secret();
    let sink = RecordingSink::default();
    let listened = listen_to_the_end(&*platform, &sink).await;
    assert!(
        matches!(listened, PlatformError::Rejected(_)),
        "{listened:?}"
    );
    assert_eq!(sink.connections(), 0);
    // A platform without a call for it answers from its settings.
    let identified = within(platform.identify()).await;
    assert!(
        matches!(identified, Ok(_) | Err(PlatformError::Rejected(_))),
        "{identified:?}"
    );
    let shown = format!("{platform:?} {listened:?} {identified:?}");
    assert!(!shown.contains(&secret), "{shown}");
}

/// Messages of bots, this one included, are no events.
pub async fn programs_are_ignored<B: PlatformBench>(bench: B) {
    let sink = RecordingSink::default();
    while_listening(&*bench.adapter(), &sink, async {
        sink.wait_connected(1).await;
        bench.say_as_program("from a program");
        bench.say(ChatKind::Direct, "from a person");
        sink.wait_events(1).await;
    })
    .await;
    assert_eq!(sink.texts(), ["from a person"]);
}

/// A stop ends the listener without an error and closes its connection.
pub async fn stop_closes_the_connection<B: PlatformBench>(bench: B) {
    let sink = RecordingSink::default();
    while_listening(&*bench.adapter(), &sink, sink.wait_connected(1)).await;
    until(|| bench.is_disconnected()).await;
}

/// A stop ends a listener whose store refuses. Nothing is acknowledged.
pub async fn stop_does_not_wait_for_the_store<B: PlatformBench>(bench: B) {
    let sink = RecordingSink::default();
    sink.close(SinkError::Unavailable);
    let before = bench.acknowledged();
    let (platform, stop) = (bench.adapter(), CancellationToken::new());
    let stopping = async {
        sink.wait_connected(1).await;
        bench.say(ChatKind::Direct, "one");
        sink.wait_until(|sink| sink.offered() > 0).await;
        stop.cancel();
    };
    let listening = platform.listen(&sink, None, stop.clone());
    let (listened, ()) = within(async { tokio::join!(listening, stopping) }).await;
    assert_eq!(listened, Ok(()));
    assert_eq!(bench.acknowledged(), before);
    until(|| bench.is_disconnected()).await;
}
