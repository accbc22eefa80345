//! Notifier between nodes: one Redis channel that every node subscribes to, on a separate
//! connection.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use deerflow_core::ids::{RunId, ThreadId};
use deerflow_core::tasks::{TaskKind, Tasks};
use deerflow_runtime::runs::{NodeNotifier, WakeSignal};
use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt};
use redis::Client;

use super::InvalidAddress;
use super::connection::{CONNECT_TIMEOUT, Outage, SharedConnection};
use super::options::RedisOptions;

/// A subscription without a message for this long is dead. Subscribers publish keepalives more
/// often.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(15);
const KEEPALIVE_EVERY: Duration = Duration::from_secs(5);
const RECONNECT_DELAY: Duration = Duration::from_millis(500);

/// Notifier of a node. Uses two connections: one to subscribe, one to publish.
pub struct RedisNodeNotifier {
    shared: Arc<NotifierShared>,
    tasks: Tasks,
}

/// State shared by publishing and subscribing.
struct NotifierShared {
    client: Client,
    /// Name of the channel. It contains braces, so that a cluster maps it to one slot.
    channel: String,
    publishes: SharedConnection,
}

impl RedisNodeNotifier {
    /// Creates a notifier that has not connected yet. `tasks` completes notifications in flight.
    pub fn new(options: &RedisOptions, tasks: Tasks) -> Result<Self, InvalidAddress> {
        let client = Client::open(options.url.as_str()).map_err(|_| InvalidAddress)?;
        let shared = NotifierShared {
            client,
            channel: format!("{}r:{{nodes}}:bell", options.key_prefix),
            publishes: SharedConnection::new("rings"),
        };
        Ok(Self {
            shared: Arc::new(shared),
            tasks,
        })
    }
}

impl fmt::Debug for RedisNodeNotifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisNodeNotifier")
            .field("channel", &self.shared.channel)
            .finish_non_exhaustive()
    }
}

impl NodeNotifier for RedisNodeNotifier {
    fn ring(&self, signal: WakeSignal) {
        let shared = self.shared.clone();
        self.tasks.spawn(TaskKind::Finish, "wake signal", async move {
            if let Err(outage) = shared.publish(&encode(&signal)).await {
                tracing::debug!(?signal, %outage, "cannot notify other nodes, they find the change by polling");
            }
        });
    }

    fn listen(&self) -> BoxStream<'static, WakeSignal> {
        stream::unfold(self.shared.clone(), |shared| async {
            loop {
                match shared.subscribe().await {
                    Ok(messages) => {
                        return Some((stream::iter([WakeSignal::Missed]).chain(messages), shared));
                    }
                    Err(outage) => {
                        tracing::debug!(%outage, "cannot subscribe to signals of other nodes")
                    }
                }
                tokio::time::sleep(RECONNECT_DELAY).await;
            }
        })
        .flatten()
        .boxed()
    }
}

impl NotifierShared {
    /// Retries once if the connection was stale. A signal may be delivered twice.
    async fn publish(&self, text: &str) -> Result<(), Outage> {
        match self.publish_once(text).await {
            Err(outage) if outage.stale => self.publish_once(text).await,
            answered => answered,
        }
    }

    async fn publish_once(&self, text: &str) -> Result<(), Outage> {
        let mut handle = self.publishes.acquire(&self.client).await?;
        let answered = redis::cmd("PUBLISH")
            .arg(&self.channel)
            .arg(text)
            .query_async::<i64>(&mut handle.connection)
            .await;
        self.publishes.check(&handle, answered).await.map(drop)
    }

    /// Subscribes and returns the signals until the connection is dead.
    async fn subscribe(
        self: &Arc<Self>,
    ) -> Result<impl Stream<Item = WakeSignal> + Send + use<>, Outage> {
        let subscribe = async {
            let mut pubsub = self.client.get_async_pubsub().await?;
            pubsub.subscribe(&self.channel).await?;
            Ok::<_, Outage>(pubsub)
        };
        let messages = tokio::time::timeout(CONNECT_TIMEOUT, subscribe)
            .await
            .map_err(|_| Outage::new("no answer in time"))??;
        let messages = messages
            .into_on_message()
            .map(|message| message.get_payload::<String>().unwrap_or_default());
        let state = (
            self.clone(),
            Box::pin(messages),
            tokio::time::interval(KEEPALIVE_EVERY),
            tokio::time::Instant::now(),
        );
        Ok(stream::unfold(
            state,
            |(shared, mut messages, mut ticks, mut last_message_at)| async move {
                loop {
                    let text = tokio::select! {
                        text = messages.next() => text?,
                        _ = ticks.tick() => {
                            if last_message_at.elapsed() >= SILENCE_TIMEOUT {
                                return None;
                            }
                            // An outage is detected by the missing messages.
                            _ = shared.publish("").await;
                            continue;
                        }
                    };
                    last_message_at = tokio::time::Instant::now();
                    if let Some(signal) = decode(&text) {
                        return Some((signal, (shared, messages, ticks, last_message_at)));
                    }
                }
            },
        ))
    }
}

/// Returns the message text of a signal.
fn encode(signal: &WakeSignal) -> String {
    match signal {
        WakeSignal::Cancelled(run) => format!("cancelled {run}"),
        WakeSignal::Ended(run) => format!("ended {run}"),
        WakeSignal::Started(thread) => format!("started {thread}"),
        WakeSignal::Waiting => "waiting".to_owned(),
        WakeSignal::Missed => "missed".to_owned(),
    }
}

/// Parses a message. Any other text is a keepalive.
fn decode(text: &str) -> Option<WakeSignal> {
    let run = |text: &str| RunId::parse(text).ok();
    match text.split_once(' ') {
        Some(("cancelled", id)) => run(id).map(WakeSignal::Cancelled),
        Some(("ended", id)) => run(id).map(WakeSignal::Ended),
        Some(("started", id)) => ThreadId::parse(id).ok().map(WakeSignal::Started),
        None if text == "waiting" => Some(WakeSignal::Waiting),
        None if text == "missed" => Some(WakeSignal::Missed),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_round_trip_and_other_texts_are_keepalives() {
        let id = |text: &str| RunId::parse(text).expect("valid");
        for signal in [
            WakeSignal::Cancelled(id("a-1")),
            WakeSignal::Ended(id("b")),
            WakeSignal::Started(ThreadId::parse("t").expect("valid")),
            WakeSignal::Waiting,
            WakeSignal::Missed,
        ] {
            assert_eq!(decode(&encode(&signal)), Some(signal));
        }
        assert_eq!(
            ["", "cancelled", "ended a/b", "stopped a"].map(decode),
            [const { None }; 4]
        );
    }

    #[test]
    fn channel_has_one_slot_and_key_prefix() {
        let options = RedisOptions {
            key_prefix: "x:".to_owned(),
            ..RedisOptions::at("redis://localhost")
        };
        let notifier = RedisNodeNotifier::new(&options, Tasks::new()).expect("an address");
        assert_eq!(notifier.shared.channel, "x:r:{nodes}:bell");
    }
}
