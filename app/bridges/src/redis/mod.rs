//! Stream bridge for several processes: one Redis stream per run, appended by its publisher, read
//! by the viewers of all nodes.
//!
//! The publisher numbers events in memory and sends them in batches; no viewer sees an event before
//! the server has it. The server's stream is a copy: the publisher rebuilds it when it is lost.
//! While the server is unavailable, events go to a durable log, from which viewers on any node read
//! them. Without a durable log, or while that is unavailable too, a publisher serves the viewers of
//! its own node from memory.

mod claim;
mod client;
mod connection;
mod durable_log_reads;
mod follower;
mod locate;
mod node_notifier;
mod options;
mod poll;
mod poller;
mod presence;
mod protocol;
mod publish;
mod publisher;
mod publisher_steps;
mod run_log;
mod run_logs;
mod sender;
mod shared;
mod spill;
mod spill_state;
mod spill_writer;
mod stream_head;
mod stream_state;
mod viewer;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use deerflow_core::ids::RunId;
use deerflow_core::tasks::{TaskKind, Tasks};
use deerflow_runtime::stream_bridge::{
    BridgeError, EventData, EventId, EventName, ResumeFrom, ResumeResult, StreamBridge, StreamItem,
    StreamKey, StreamLog, Subscription, TerminalKind,
};
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};

pub use self::client::SAFE_POLICY;
use self::client::StreamClient;
pub use self::node_notifier::RedisNodeNotifier;
pub use self::options::RedisOptions;
use self::publisher::PushRefusal;
use self::run_log::{Located, RunLog};
use self::run_logs::RunLogs;
use self::shared::BridgeShared;
use self::viewer::{StreamSources, Viewer};

/// Maximum number of concurrent writes to the durable log per node.
const MAX_CONCURRENT_SPILLS: usize = 4;
/// Maximum number of runs that a node reads from the durable log concurrently.
const MAX_CONCURRENT_LOG_READS: usize = 8;
/// Time limit for sending unsent events when the bridge closes.
const CLOSE_FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// The Redis URL is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "stream_bridge.redis_url is not valid: expected redis://[user:password@]host[:port][/db], or rediss:// for TLS"
)]
pub struct InvalidAddress;

/// Stream bridge over Redis. It uses three connections and the notifier two, independent of the
/// number of runs and viewers.
pub struct RedisStreamBridge {
    shared: Arc<BridgeShared>,
    started: AtomicBool,
}

impl RedisStreamBridge {
    /// Creates a bridge that has not connected yet.
    pub fn new(options: RedisOptions) -> Result<Self, InvalidAddress> {
        Self::build(options, None)
    }

    /// Creates a bridge with a durable log for events that the server cannot take.
    pub fn with_log(
        options: RedisOptions,
        log: Arc<dyn StreamLog>,
    ) -> Result<Self, InvalidAddress> {
        Self::build(options, Some(log))
    }

    fn build(
        options: RedisOptions,
        durable: Option<Arc<dyn StreamLog>>,
    ) -> Result<Self, InvalidAddress> {
        let client = Arc::new(
            StreamClient::new(options.clone(), durable.is_some()).map_err(|_| InvalidAddress)?,
        );
        let tasks = Tasks::new();
        let shared = BridgeShared {
            runs: RunLogs::new(durable.is_some(), tasks.clone()),
            sources: StreamSources {
                client,
                options: Arc::new(options),
                closed: Arc::default(),
                durable,
            },
            tasks,
            woken_runs: Mutex::new(HashSet::new()),
            wakeup: Notify::new(),
            policy_checked: AtomicBool::new(false),
            spills: Semaphore::new(MAX_CONCURRENT_SPILLS),
            log_reads: Semaphore::new(MAX_CONCURRENT_LOG_READS),
        };
        Ok(Self {
            shared: Arc::new(shared),
            started: AtomicBool::new(false),
        })
    }

    /// Returns the server's `maxmemory-policy`, or the reason why it does not answer. Used by
    /// configuration checks.
    pub async fn probe(options: RedisOptions) -> Result<String, String> {
        let client = StreamClient::new(options, false).map_err(|_| InvalidAddress.to_string())?;
        client
            .eviction_policy()
            .await
            .map_err(|outage| outage.to_string())
    }

    async fn with_publisher<T>(
        &self,
        key: &StreamKey,
        act: impl Fn(&RunLog) -> Result<T, PushRefusal>,
    ) -> Result<(Arc<RunLog>, T), BridgeError> {
        let shared = &self.shared;
        shared.refuse_if_closed()?;
        let mut log = shared.runs.get(&key.run_id);
        loop {
            let published = match log {
                Some(log) => log,
                None => shared.claim(key).await?,
            };
            match act(&published) {
                Ok(result) => {
                    shared.ensure_sender(&published);
                    return Ok((published, result));
                }
                Err(PushRefusal::Bridge(error)) => return Err(error),
                Err(PushRefusal::NotPublisher) => log = None,
            }
        }
    }
}

impl fmt::Debug for RedisStreamBridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisStreamBridge")
            .field("options", &self.shared.sources.options)
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
        let options = &self.shared.sources.options;
        let (_, id) = self
            .with_publisher(key, |log| {
                log.push(key.attempt, event.clone(), data.clone(), options)
            })
            .await?;
        self.shared.runs.evict_to(options.max_owned_bytes);
        Ok(id)
    }

    /// Waits until the server has the end. If the server is unavailable, returns at once, and the
    /// end is sent later.
    async fn publish_terminal(
        &self,
        key: &StreamKey,
        kind: TerminalKind,
        data: Option<Bytes>,
    ) -> Result<(), BridgeError> {
        let options = &self.shared.sources.options;
        let (log, ()) = self
            .with_publisher(key, |log| log.end(key.attempt, kind, data.clone(), options))
            .await?;
        self.shared.wait_settled(&log).await;
        log.ended_by(key.attempt, kind)
    }

    async fn subscribe(
        &self,
        run_id: &RunId,
        from: ResumeFrom,
        heartbeat: Duration,
    ) -> Result<Subscription, BridgeError> {
        self.shared.refuse_if_closed()?;
        Ok(match self.shared.locate_run(run_id, from).await? {
            None => Subscription {
                resume: ResumeResult::Unknown,
                items: stream::empty().boxed(),
            },
            Some((_, Located::Gap(gap))) => Subscription {
                resume: ResumeResult::Gap,
                items: stream::iter([StreamItem::Gap(gap)]).boxed(),
            },
            Some((log, Located::At(position))) => {
                let resume = position
                    .ended
                    .map_or(ResumeResult::From(position.next), ResumeResult::Ended);
                let items =
                    Viewer::new(self.shared.sources.clone(), log, from, &position, heartbeat)
                        .boxed();
                Subscription { resume, items }
            }
        })
    }

    async fn cleanup(&self, run_id: &RunId, delay: Duration) {
        let shared = &self.shared;
        if shared.refuse_if_closed().is_err() {
            return;
        }
        if let Some(log) = shared.runs.get(run_id) {
            shared.wait_settled(&log).await;
        }
        if let Err(outage) = shared.sources.client.forget(run_id, delay).await {
            if delay.is_zero() {
                tracing::warn!(%run_id, %outage, "cannot delete a stream in redis, it is retained for the default time");
            } else {
                tracing::debug!(%run_id, %outage, "cannot shorten the retention of a stream in redis, it is kept for the default time");
            }
        }
    }

    async fn cancel(&self, run_id: &RunId) {
        let shared = &self.shared;
        if shared.refuse_if_closed().is_err() {
            return;
        }
        match shared.runs.get(run_id) {
            Some(log) if log.cancel() => {
                shared.ensure_sender(&log);
                shared.wait_settled(&log).await;
            }
            _ => shared.cancel_elsewhere(run_id).await,
        }
    }

    async fn mark_awaiting_input(&self, run_id: &RunId) {
        if let Some(log) = self.shared.runs.get(run_id)
            && log.await_input()
        {
            self.shared.ensure_sender(&log);
        }
    }

    async fn ping(&self) -> Result<(), BridgeError> {
        self.shared
            .sources
            .client
            .ping()
            .await
            .map_err(|outage| BridgeError::Transport(outage.to_string()))
    }

    async fn start(&self) -> Result<(), BridgeError> {
        let shared = &self.shared;
        shared.refuse_if_closed()?;
        match shared.sources.client.eviction_policy().await {
            Ok(policy) if policy != SAFE_POLICY && shared.sources.options.refuse_eviction => {
                let reason = format!(
                    "redis has maxmemory-policy {policy} and may evict streams: set it to {SAFE_POLICY}"
                );
                return Err(BridgeError::Transport(reason));
            }
            Err(outage) if outage.denied => {
                return Err(BridgeError::Transport(format!(
                    "redis rejects the user of redis_url: {outage}"
                )));
            }
            Ok(policy) if policy == SAFE_POLICY => {
                shared.policy_checked.store(true, Ordering::Release)
            }
            // The poller logs these: an unsafe policy on its first check, an unreachable server
            // once it answers.
            Ok(_) | Err(_) => {}
        }
        if !self.started.swap(true, Ordering::AcqRel) {
            shared.tasks.spawn(
                TaskKind::Service,
                "stream signal listener",
                shared.clone().listen_loop(),
            );
            shared.tasks.spawn(
                TaskKind::Service,
                "stream poller",
                shared.clone().poll_loop(),
            );
        }
        Ok(())
    }

    async fn close(&self) {
        let shared = &self.shared;
        if shared.sources.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        let logs = shared.runs.all();
        logs.iter().for_each(|log| log.notify_viewers());
        _ = tokio::time::timeout(
            CLOSE_FLUSH_TIMEOUT,
            join_all(logs.iter().map(|log| shared.wait_settled(log))),
        )
        .await;
        shared.runs.clear();
        shared.tasks.shut_down().await;
    }
}
