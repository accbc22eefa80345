//! Stream bridge of one process: an event log per run, in memory.

mod log;
mod options;
mod run_logs;
mod spill;
mod viewer;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::stream_bridge::{
    BridgeError, EventData, EventId, EventName, ResumeFrom, ResumeResult, StreamBridge, StreamItem,
    StreamKey, StreamLog, StreamStatus, Subscription, TerminalKind,
};
use async_trait::async_trait;
use bytes::Bytes;
use deerflow_core::ids::RunId;
use deerflow_core::tasks::{TaskKind, Tasks};
use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use tokio::time::Instant;

use self::log::{Located, RunLog};
pub use self::options::{InMemoryOptions, InvalidOption};
use self::run_logs::{EndedRuns, RunLogs};
use self::spill::Limits;
use self::viewer::Viewer;

/// In-memory stream bridge. A publish takes one short lock on its run's log and wakes the waiting
/// viewers; viewers share the log and read it in batches at their own pace.
///
/// The bridge has a log of each run from its first publish (or its cancellation). The log is
/// removed after the end of the run: after the clean-up delay, after the retention, or when the
/// ended runs exceed their budget. Whole runs are retained while they are active, up to the limits
/// of [`InMemoryOptions`]. Events beyond the limits are written to a durable log, if there is one,
/// concurrently with the producer, and viewers read them there.
pub struct InMemoryStreamBridge {
    inner: Arc<Inner>,
    started: AtomicBool,
}

struct Inner {
    options: InMemoryOptions,
    limits: Limits,
    durable: Option<Arc<dyn StreamLog>>,
    tasks: Tasks,
    runs: RunLogs,
    ended: Mutex<EndedRuns>,
    closed: Arc<AtomicBool>,
}

impl InMemoryStreamBridge {
    /// Creates an empty bridge. It can be used at once; [`StreamBridge::start`] only starts the
    /// sweep that releases memory.
    pub fn new(options: InMemoryOptions) -> Result<Self, InvalidOption> {
        Self::over(options, None)
    }

    /// Same as [`new`](Self::new), but writes the events beyond a run's limits to `log` and reads
    /// them from there.
    pub fn with_log(
        options: InMemoryOptions,
        log: Arc<dyn StreamLog>,
    ) -> Result<Self, InvalidOption> {
        Self::over(options, Some(log))
    }

    fn over(
        options: InMemoryOptions,
        durable: Option<Arc<dyn StreamLog>>,
    ) -> Result<Self, InvalidOption> {
        options.validate()?;
        let limits = Limits::of(&options, durable.is_some());
        let tasks = Tasks::new();
        let (runs, ended, closed) = (
            RunLogs::new(tasks.clone()),
            Mutex::default(),
            Arc::default(),
        );
        let inner = Inner {
            options,
            limits,
            durable,
            tasks,
            runs,
            ended,
            closed,
        };
        Ok(Self {
            inner: Arc::new(inner),
            started: AtomicBool::new(false),
        })
    }
}

impl fmt::Debug for InMemoryStreamBridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InMemoryStreamBridge")
            .field("options", &self.inner.options)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl StreamBridge for InMemoryStreamBridge {
    async fn publish(
        &self,
        key: &StreamKey,
        event: EventName,
        data: EventData,
    ) -> Result<EventId, BridgeError> {
        let inner = &self.inner;
        inner.ensure_open()?;
        let (id, viewers) = inner.runs.with_open(&key.run_id, |log| {
            let id = log.append(key.attempt, event, data, &inner.limits)?;
            inner.spill_if_full(log);
            Ok((id, log.viewers()))
        })?;
        viewers.notify();
        Ok(id)
    }

    async fn publish_terminal(
        &self,
        key: &StreamKey,
        kind: TerminalKind,
        data: Option<Bytes>,
    ) -> Result<(), BridgeError> {
        let inner = &self.inner;
        inner.ensure_open()?;
        let (log, bytes) = inner.runs.with_open(&key.run_id, |log| {
            let bytes = log.end(key.attempt, kind, data, &inner.limits)?;
            Ok((log.clone(), bytes))
        })?;
        inner.on_run_ended(log, bytes);
        Ok(())
    }

    async fn subscribe(
        &self,
        run_id: &RunId,
        from: ResumeFrom,
        heartbeat: Duration,
    ) -> Result<Subscription, BridgeError> {
        let inner = &self.inner;
        inner.ensure_open()?;
        let Some(log) = inner.find(run_id) else {
            return Ok(Subscription {
                resume: ResumeResult::Unknown,
                items: stream::empty().boxed(),
            });
        };
        let located = match log.locate(from) {
            Located::Gap(gap) => inner
                .locate_spilled(&log, from)
                .await
                .unwrap_or(Located::Gap(gap)),
            at => at,
        };
        Ok(match located {
            Located::Gap(gap) => Subscription {
                resume: ResumeResult::Gap,
                items: stream::iter([StreamItem::Gap(gap)]).boxed(),
            },
            Located::At(seq, status) => {
                let resume = match status {
                    StreamStatus::Ended(kind) => ResumeResult::Ended(kind),
                    StreamStatus::Active | StreamStatus::AwaitingInput => ResumeResult::From(seq),
                };
                let items = Viewer::new(log, inner, from, seq, heartbeat).boxed();
                Subscription { resume, items }
            }
        })
    }

    /// An open run is removed only after its end: until then its producer and its viewers need it.
    async fn cleanup(&self, run_id: &RunId, delay: Duration) {
        let now = Instant::now();
        // A delay beyond the range of the clock means never.
        if let (Some(at), Some(log)) = (now.checked_add(delay), self.inner.find(run_id)) {
            log.expire_at(at);
            self.inner.remove_if_expired(&log);
        }
    }

    async fn cancel(&self, run_id: &RunId) {
        let inner = &self.inner;
        if inner.is_closed() {
            return;
        }
        if let (log, Some(bytes)) = inner
            .runs
            .with_open(run_id, |log| (log.clone(), log.cancel()))
        {
            inner.on_run_ended(log, bytes);
        }
    }

    async fn mark_awaiting_input(&self, run_id: &RunId) {
        if let Some(log) = self.inner.find(run_id) {
            log.await_input();
        }
    }

    async fn start(&self) -> Result<(), BridgeError> {
        self.inner.ensure_open()?;
        if !self.started.swap(true, Ordering::AcqRel) {
            let (inner, stop) = (self.inner.clone(), self.inner.tasks.token().clone());
            self.inner
                .tasks
                .spawn(TaskKind::Service, "in-memory bridge sweeper", async move {
                    while stop
                        .run_until_cancelled(tokio::time::sleep(inner.options.sweep_interval))
                        .await
                        .is_some()
                    {
                        inner.sweep();
                    }
                });
        }
        Ok(())
    }

    async fn close(&self) {
        self.inner.closed.store(true, Ordering::Release);
        self.inner.runs.clear();
        self.inner.tasks.shut_down().await;
    }
}

impl Inner {
    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    fn ensure_open(&self) -> Result<(), BridgeError> {
        if self.is_closed() {
            Err(BridgeError::Closed)
        } else {
            Ok(())
        }
    }

    /// Returns the log of a run, unless it has expired, even if the sweep has not removed it yet.
    fn find(&self, run_id: &RunId) -> Option<Arc<RunLog>> {
        let log = self.runs.get(run_id)?;
        if self.remove_if_expired(&log) {
            None
        } else {
            Some(log)
        }
    }

    fn remove_if_expired(&self, log: &Arc<RunLog>) -> bool {
        let now = Instant::now();
        let expired = log.is_expired(now, &self.options);
        if expired {
            // Checked again under the map's lock: an event may have been published in the meantime.
            self.runs
                .remove_if(log, |log| log.is_expired(now, &self.options));
        }
        expired
    }

    /// Wakes the viewers of a run that has just ended, and evicts other ended runs over the budget.
    fn on_run_ended(&self, log: Arc<RunLog>, bytes: usize) {
        log.viewers().notify();
        let evicted = self
            .ended
            .lock()
            .push(log, bytes, self.options.max_ended_bytes);
        for log in evicted {
            tracing::debug!(run_id = %log.run_id(), "evicted ended run early, the budget for ended runs is exhausted");
            self.runs.remove_if(&log, |_| true);
            log.evict_all_but_newest();
        }
    }

    fn sweep(&self) {
        let now = Instant::now();
        self.runs
            .remove_where(|log| log.is_expired(now, &self.options));
        // Freeing a large log takes time: the lock is released first.
        let released = self.ended.lock().release();
        drop(released);
    }
}

#[cfg(test)]
mod contract_tests;
#[cfg(test)]
mod random_tests;
#[cfg(test)]
mod tests;
