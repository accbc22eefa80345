//! The stream bridge of several processes: a Redis stream per run, appended by its owner, shared by every node's viewers.
//!
//! The owner numbers events in memory and sends them in batches; nobody sees one before the server has it. The server's log is a
//! copy: its owner makes it anew when it is lost, and while the server is out of order events go to a durable log, from which viewers
//! on any node read them. Without one, or while it is out of order too, an owner serves its own viewers from memory.

mod claim;
mod find;
mod follow;
mod inner;
mod lane;
mod link;
mod log;
mod node_bell;
mod options;
mod outline;
mod owner;
mod pulse;
mod runs;
mod sender;
mod spill;
mod viewer;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use harness::ids::RunId;
use harness::runtime::stream_bridge::{
    BridgeError, EventData, EventId, EventName, ResumeFrom, ResumeResult, StreamBridge, StreamItem,
    StreamKey, StreamLog, Subscription, TerminalKind,
};
use harness::runtime::tasks::{TaskKind, Tasks};
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};

use self::inner::Inner;
use self::link::Link;
use self::log::{Located, RunLog};
pub use self::node_bell::RedisNodeBell;
pub use self::options::RedisOptions;
use self::owner::Refused;
use self::runs::Runs;
use self::viewer::{Surroundings, Viewer};

/// The `maxmemory-policy` under which a full server refuses events instead of dropping whole streams.
pub const SAFE_POLICY: &str = "noeviction";
/// Writes to the durable log that a node has under way.
const SPILLS_AT_ONCE: usize = 4;
/// Runs that a node reads on of in the durable log at a time.
const LOG_READS_AT_ONCE: usize = 8;
/// On closing, what waits gets so long to reach the server.
const LAST_APPENDS: Duration = Duration::from_secs(2);

/// The address is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "stream_bridge.redis_url is no address: expected redis://[user:password@]host[:port][/db], or rediss:// for TLS"
)]
pub struct BadAddress;

/// The Redis bridge. It uses three connections and the bell two, whatever the number of runs and viewers.
pub struct RedisStreamBridge {
    inner: Arc<Inner>,
    started: AtomicBool,
}

impl RedisStreamBridge {
    /// A bridge that has not spoken to its server yet.
    pub fn new(options: RedisOptions) -> Result<Self, BadAddress> {
        Self::over(options, None)
    }

    /// The same beside `log`, which takes what the server cannot.
    pub fn with_log(options: RedisOptions, log: Arc<dyn StreamLog>) -> Result<Self, BadAddress> {
        Self::over(options, Some(log))
    }

    fn over(
        options: RedisOptions,
        durable: Option<Arc<dyn StreamLog>>,
    ) -> Result<Self, BadAddress> {
        let link = Arc::new(Link::new(options.clone(), durable.is_some()).map_err(|_| BadAddress)?);
        let tasks = Tasks::new();
        let inner = Inner {
            runs: Runs::beside(durable.is_some(), tasks.clone()),
            around: Surroundings {
                link,
                options: Arc::new(options),
                closed: Arc::default(),
                durable,
            },
            tasks,
            bells: Mutex::new(HashSet::new()),
            rang: Notify::new(),
            policy_judged: AtomicBool::new(false),
            spills: Semaphore::new(SPILLS_AT_ONCE),
            log_reads: Semaphore::new(LOG_READS_AT_ONCE),
        };
        Ok(Self {
            inner: Arc::new(inner),
            started: AtomicBool::new(false),
        })
    }

    /// The `maxmemory-policy` of the server, or why it does not answer: for who examines a configuration.
    pub async fn probe(options: RedisOptions) -> Result<String, String> {
        let link = Link::new(options, false).map_err(|_| BadAddress.to_string())?;
        link.eviction_policy()
            .await
            .map_err(|outage| outage.to_string())
    }

    async fn with_owned<T>(
        &self,
        key: &StreamKey,
        act: impl Fn(&RunLog) -> Result<T, Refused>,
    ) -> Result<(Arc<RunLog>, T), BridgeError> {
        let inner = &self.inner;
        inner.refuse_if_closed()?;
        let mut log = inner.runs.get(&key.run_id);
        loop {
            let owned = match log {
                Some(log) => log,
                None => inner.claim(key).await?,
            };
            match act(&owned) {
                Ok(done) => {
                    inner.work_on(&owned);
                    return Ok((owned, done));
                }
                Err(Refused::Bridge(error)) => return Err(error),
                Err(Refused::NotOwner) => log = None,
            }
        }
    }
}

impl fmt::Debug for RedisStreamBridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStreamBridge")
            .field("options", &self.inner.around.options)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl StreamBridge for RedisStreamBridge {
    async fn publish(
        &self,
        key: &StreamKey,
        event: EventName,
        data: EventData,
    ) -> Result<EventId, BridgeError> {
        let options = &self.inner.around.options;
        let (_, id) = self
            .with_owned(key, |log| {
                log.push(key.attempt, event.clone(), data.clone(), options)
            })
            .await?;
        self.inner.runs.keep_within(options.max_owned_bytes);
        Ok(id)
    }

    /// Waits until the server has the end, but not for a server that is out of order: then the end waits here.
    async fn publish_terminal(
        &self,
        key: &StreamKey,
        kind: TerminalKind,
        data: Option<Bytes>,
    ) -> Result<(), BridgeError> {
        let options = &self.inner.around.options;
        let (log, ()) = self
            .with_owned(key, |log| log.end(key.attempt, kind, data.clone(), options))
            .await?;
        self.inner.settled(&log).await;
        log.ended_by(key.attempt, kind)
    }

    async fn subscribe(
        &self,
        run_id: &RunId,
        from: ResumeFrom,
        heartbeat: Duration,
    ) -> Result<Subscription, BridgeError> {
        self.inner.refuse_if_closed()?;
        Ok(match self.inner.find(run_id, from).await? {
            None => Subscription {
                resume: ResumeResult::Unknown,
                items: stream::empty().boxed(),
            },
            Some((_, Located::Gap(gap))) => Subscription {
                resume: ResumeResult::Gap,
                items: stream::iter([StreamItem::Gap(gap)]).boxed(),
            },
            Some((log, Located::At(place))) => {
                let resume = place
                    .ended
                    .map_or(ResumeResult::From(place.next), ResumeResult::Ended);
                let items =
                    Viewer::new(self.inner.around.clone(), log, from, &place, heartbeat).boxed();
                Subscription { resume, items }
            }
        })
    }

    async fn cleanup(&self, run_id: &RunId, delay: Duration) {
        let inner = &self.inner;
        if inner.refuse_if_closed().is_err() {
            return;
        }
        if let Some(log) = inner.runs.get(run_id) {
            inner.settled(&log).await;
        }
        if let Err(outage) = inner.around.link.forget(run_id, delay).await {
            tracing::debug!(%run_id, %outage, "a stream is kept for the usual time, its clean-up did not reach redis");
        }
    }

    async fn cancel(&self, run_id: &RunId) {
        let inner = &self.inner;
        if inner.refuse_if_closed().is_err() {
            return;
        }
        match inner.runs.get(run_id) {
            Some(log) if log.cancel() => {
                inner.work_on(&log);
                inner.settled(&log).await;
            }
            _ => inner.cancel_elsewhere(run_id).await,
        }
    }

    async fn mark_awaiting_input(&self, run_id: &RunId) {
        if let Some(log) = self.inner.runs.get(run_id)
            && log.await_input()
        {
            self.inner.work_on(&log);
        }
    }

    async fn ping(&self) -> Result<(), BridgeError> {
        self.inner
            .around
            .link
            .ping()
            .await
            .map_err(|outage| BridgeError::Transport(outage.to_string()))
    }

    async fn start(&self) -> Result<(), BridgeError> {
        let inner = &self.inner;
        inner.refuse_if_closed()?;
        match inner.around.link.eviction_policy().await {
            Ok(policy) if policy != SAFE_POLICY && inner.around.options.refuse_eviction => {
                let why = format!(
                    "redis has maxmemory-policy {policy} and may drop streams: set it to {SAFE_POLICY}"
                );
                return Err(BridgeError::Transport(why));
            }
            Err(outage) if outage.denied => {
                return Err(BridgeError::Transport(format!(
                    "redis refuses the user of redis_url: {outage}"
                )));
            }
            Ok(policy) if policy == SAFE_POLICY => {
                inner.policy_judged.store(true, Ordering::Release)
            }
            // Said by the reader: of an unsafe policy now, of an unreachable server once it answers.
            Ok(_) | Err(_) => {}
        }
        if !self.started.swap(true, Ordering::AcqRel) {
            inner.tasks.spawn(
                TaskKind::Service,
                "stream doorbell",
                inner.clone().keep_listening(),
            );
            inner.tasks.spawn(
                TaskKind::Service,
                "stream reader",
                inner.clone().keep_looking(),
            );
        }
        Ok(())
    }

    async fn close(&self) {
        let inner = &self.inner;
        if inner.around.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        let logs = inner.runs.all();
        logs.iter().for_each(|log| log.ring());
        _ = tokio::time::timeout(
            LAST_APPENDS,
            join_all(logs.iter().map(|log| inner.settled(log))),
        )
        .await;
        inner.runs.clear();
        inner.tasks.shut_down().await;
    }
}
