//! The bell between nodes: one channel that every node hears, on a connection of its own.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt};
use harness::ids::RunId;
use harness::runtime::runs::{NodeBell, Ring};
use harness::runtime::tasks::{TaskKind, Tasks};
use redis::Client;

use super::BadAddress;
use super::lane::{DIAL_LIMIT, Lane, Outage};
use super::options::RedisOptions;

/// A line that is silent for so long is dead: who listens rings it for nothing more often.
const DEAF_AFTER: Duration = Duration::from_secs(15);
const RING_EVERY: Duration = Duration::from_secs(5);
const LISTEN_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// The bell of a node. Two connections: one to listen, one to ring.
pub struct RedisNodeBell {
    line: Arc<Line>,
    tasks: Tasks,
}

/// What it takes to ring and to listen.
struct Line {
    client: Client,
    /// In braces, so that a cluster keeps the channel in one slot.
    channel: String,
    rings: Lane,
}

impl RedisNodeBell {
    /// A bell that has not spoken to its server yet. Rings under way are `tasks` to finish.
    pub fn new(options: &RedisOptions, tasks: Tasks) -> Result<Self, BadAddress> {
        let client = Client::open(options.url.as_str()).map_err(|_| BadAddress)?;
        let line = Line {
            client,
            channel: format!("{}r:{{nodes}}:bell", options.key_prefix),
            rings: Lane::new("rings"),
        };
        Ok(Self {
            line: Arc::new(line),
            tasks,
        })
    }
}

impl fmt::Debug for RedisNodeBell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisNodeBell")
            .field("channel", &self.line.channel)
            .finish_non_exhaustive()
    }
}

impl NodeBell for RedisNodeBell {
    fn ring(&self, ring: Ring) {
        let line = self.line.clone();
        self.tasks.spawn(TaskKind::Finish, "ring", async move {
            if let Err(outage) = line.publish(&written(&ring)).await {
                tracing::debug!(?ring, %outage, "other nodes find this by looking");
            }
        });
    }

    fn listen(&self) -> BoxStream<'static, Ring> {
        stream::unfold(self.line.clone(), |line| async {
            loop {
                match line.dial().await {
                    Ok(heard) => return Some((stream::iter([Ring::Missed]).chain(heard), line)),
                    Err(outage) => {
                        tracing::debug!(%outage, "the bell between nodes cannot be heard")
                    }
                }
                tokio::time::sleep(LISTEN_AGAIN_AFTER).await;
            }
        })
        .flatten()
        .boxed()
    }
}

impl Line {
    /// Once more if the connection was stale: a ring may be rung twice.
    async fn publish(&self, text: &str) -> Result<(), Outage> {
        match self.publish_once(text).await {
            Err(outage) if outage.stale => self.publish_once(text).await,
            answered => answered,
        }
    }

    async fn publish_once(&self, text: &str) -> Result<(), Outage> {
        let mut ticket = self.rings.ticket(&self.client).await?;
        let answered = redis::cmd("PUBLISH")
            .arg(&self.channel)
            .arg(text)
            .query_async::<i64>(&mut ticket.connection)
            .await;
        self.rings.judge(&ticket, answered).await.map(drop)
    }

    /// What is rung until the line goes dead.
    async fn dial(self: &Arc<Self>) -> Result<impl Stream<Item = Ring> + Send + use<>, Outage> {
        let dial = async {
            let mut line = self.client.get_async_pubsub().await?;
            line.subscribe(&self.channel).await?;
            Ok::<_, Outage>(line)
        };
        let heard = tokio::time::timeout(DIAL_LIMIT, dial)
            .await
            .map_err(|_| Outage::because("no answer in time"))??;
        let heard = heard
            .into_on_message()
            .map(|message| message.get_payload::<String>().unwrap_or_default());
        let state = (
            self.clone(),
            Box::pin(heard),
            tokio::time::interval(RING_EVERY),
            tokio::time::Instant::now(),
        );
        Ok(stream::unfold(
            state,
            |(line, mut heard, mut ticks, mut alive)| async move {
                loop {
                    let text = tokio::select! {
                        text = heard.next() => text?,
                        _ = ticks.tick() => {
                            if alive.elapsed() >= DEAF_AFTER {
                                return None;
                            }
                            // An outage shows in that nothing is heard.
                            _ = line.publish("").await;
                            continue;
                        }
                    };
                    alive = tokio::time::Instant::now();
                    if let Some(ring) = read(&text) {
                        return Some((ring, (line, heard, ticks, alive)));
                    }
                }
            },
        ))
    }
}

/// A ring as it travels.
fn written(ring: &Ring) -> String {
    match ring {
        Ring::Cancelled(run) => format!("cancelled {run}"),
        Ring::Ended(run) => format!("ended {run}"),
        Ring::Waiting => "waiting".to_owned(),
        Ring::Missed => "missed".to_owned(),
    }
}

/// The ring that travelled; anything else is only a sign of life.
fn read(text: &str) -> Option<Ring> {
    let run = |text: &str| RunId::parse(text).ok();
    match text.split_once(' ') {
        Some(("cancelled", id)) => run(id).map(Ring::Cancelled),
        Some(("ended", id)) => run(id).map(Ring::Ended),
        None if text == "waiting" => Some(Ring::Waiting),
        None if text == "missed" => Some(Ring::Missed),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_rung_is_what_is_heard_and_anything_else_is_only_a_sign_of_life() {
        let id = |text: &str| RunId::parse(text).expect("valid");
        for ring in [
            Ring::Cancelled(id("a-1")),
            Ring::Ended(id("b")),
            Ring::Waiting,
            Ring::Missed,
        ] {
            assert_eq!(read(&written(&ring)), Some(ring));
        }
        assert_eq!(
            ["", "cancelled", "ended a/b", "stopped a"].map(read),
            [const { None }; 4]
        );
    }

    #[test]
    fn the_channel_stays_in_one_slot_and_under_its_prefix() {
        let options = RedisOptions {
            key_prefix: "x:".to_owned(),
            ..RedisOptions::at("redis://localhost")
        };
        let bell = RedisNodeBell::new(&options, Tasks::new()).expect("an address");
        assert_eq!(bell.line.channel, "x:r:{nodes}:bell");
    }
}
