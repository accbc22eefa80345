//! Listening while a scenario takes place.

use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::PlatformBench;
use crate::markup::Part;
use crate::platform::{
    ChatKind, Content, Delivery, Event, LiveReply, OutgoingMessage, Platform, PlatformError, Sent,
    Target,
};
use crate::testkit::RecordingSink;

/// Time in which every scenario must end.
const LIMIT: Duration = Duration::from_secs(30);

/// Fails a test whose wait does not end.
pub(super) async fn within<T>(work: impl Future<Output = T>) -> T {
    timeout(LIMIT, work)
        .await
        .expect("the scenario ends in time")
}

/// Listens while a scenario takes place, connecting again as the service of an account does, then
/// stops.
pub(super) async fn while_listening<T>(
    platform: &dyn Platform,
    sink: &RecordingSink,
    scenario: impl Future<Output = T>,
) -> T {
    let stop = CancellationToken::new();
    let listening = async {
        loop {
            match platform.listen(sink, sink.cursor(), stop.clone()).await {
                Ok(()) => {
                    assert!(stop.is_cancelled(), "the listener ends before its stop");
                    return;
                }
                Err(PlatformError::Unavailable(_)) => {}
                Err(error) => panic!("the listener ends with {error:?}"),
            }
        }
    };
    let scenario = async {
        let result = scenario.await;
        stop.cancel();
        result
    };
    within(async { tokio::join!(listening, scenario) }).await.1
}

/// Listens until the listener ends by itself, with a stop that is never requested.
pub(super) async fn listen_to_the_end(
    platform: &dyn Platform,
    sink: &RecordingSink,
) -> PlatformError {
    let listening = platform.listen(sink, None, CancellationToken::new());
    within(listening).await.expect_err("no stop was requested")
}

/// Lets the person write in the direct chat and returns the event.
pub(super) async fn asked(bench: &impl PlatformBench, sink: &RecordingSink) -> Event {
    sink.wait_connected(1).await;
    let before = sink.events().len();
    bench.say(ChatKind::Direct, "question");
    sink.wait_events(before + 1).await.remove(before)
}

/// Waits until the platform has noticed something that its bench cannot announce.
pub(super) async fn until(mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    };
    within(waiting).await;
}

/// Builds the answer to an event.
pub(super) fn answer(event: &Event, part: Part) -> OutgoingMessage {
    OutgoingMessage {
        target: Target::of(event),
        content: Content::Text(part),
        live: serde_json::Value::Null,
        last: true,
    }
}

/// Builds a text without markup.
pub(super) fn plain(text: &str) -> Part {
    Part {
        markup: text.to_owned(),
        plain: text.to_owned(),
    }
}

/// Builds an answer in progress to an event.
pub(super) fn live(event: &Event) -> LiveReply {
    LiveReply {
        key: Uuid::from_u128(77),
        target: Target::of(event),
        stop: None,
        state: serde_json::Value::Null,
        may_exist: false,
    }
}

/// Builds the first attempt of a delivery.
pub(super) fn delivery(number: u128) -> Delivery {
    Delivery {
        id: Uuid::from_u128(number),
        attempt: 1,
        progress: serde_json::Value::Null,
    }
}

/// Sends a message until the platform takes it, as the outbox does.
pub(super) async fn deliver(
    platform: &dyn Platform,
    message: &OutgoingMessage,
    delivery: &mut Delivery,
) -> Sent {
    loop {
        match platform.send(message, None, delivery).await {
            Ok(sent) => return sent,
            Err(PlatformError::Unavailable(_)) => {
                delivery.attempt += 1;
                tokio::task::yield_now().await;
            }
            Err(error) => panic!("the message is refused with {error:?}"),
        }
    }
}
