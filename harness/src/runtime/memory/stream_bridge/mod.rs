//! The stream bridge of one process: an event log per run, in memory.

mod log;
mod options;
mod runs;
mod spill;
mod viewer;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::ids::RunId;
use crate::runtime::stream_bridge::{
    BridgeError, EventData, EventId, EventName, ResumeFrom, ResumeResult, StreamBridge, StreamItem,
    StreamKey, StreamLog, StreamStatus, Subscription, TerminalKind,
};
use crate::runtime::tasks::{TaskKind, Tasks};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use tokio::time::Instant;

use self::log::{Located, RunLog};
pub use self::options::{InvalidOption, MemoryOptions};
use self::runs::{Ended, Runs};
use self::spill::Limits;
use self::viewer::Viewer;

/// The memory bridge. A publish takes one short lock on its run's log and wakes the viewers that wait; viewers share the log and
/// read it in batches at their own pace.
///
/// A run is known from its first publish (or its cancelling) until, once ended, its clean-up is due, its retention is over, or
/// the ended runs outgrow their budget. Whole runs are kept while they live, up to the limits of [`MemoryOptions`]; what is beyond them
/// goes to a durable log if there is one, written beside the producer, and viewers read it there.
pub struct MemoryStreamBridge {
    inner: Arc<Inner>,
    started: AtomicBool,
}

struct Inner {
    options: MemoryOptions,
    limits: Limits,
    durable: Option<Arc<dyn StreamLog>>,
    tasks: Tasks,
    runs: Runs,
    ended: Mutex<Ended>,
    closed: Arc<AtomicBool>,
}

impl MemoryStreamBridge {
    /// An empty bridge. It works at once; [`StreamBridge::start`] begins giving memory back.
    pub fn new(options: MemoryOptions) -> Result<Self, InvalidOption> {
        Self::over(options, None)
    }

    /// The same, which gives what is beyond the limits of a run to `log` and reads it from there.
    pub fn with_log(
        options: MemoryOptions,
        log: Arc<dyn StreamLog>,
    ) -> Result<Self, InvalidOption> {
        Self::over(options, Some(log))
    }

    fn over(
        options: MemoryOptions,
        durable: Option<Arc<dyn StreamLog>>,
    ) -> Result<Self, InvalidOption> {
        options.validate()?;
        let limits = Limits::of(&options, durable.is_some());
        let tasks = Tasks::new();
        let (runs, ended, closed) = (Runs::new(tasks.clone()), Mutex::default(), Arc::default());
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

impl fmt::Debug for MemoryStreamBridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStreamBridge")
            .field("options", &self.inner.options)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl StreamBridge for MemoryStreamBridge {
    async fn publish(
        &self,
        key: &StreamKey,
        event: EventName,
        data: EventData,
    ) -> Result<EventId, BridgeError> {
        let inner = &self.inner;
        inner.refuse_if_closed()?;
        let (id, viewers) = inner.runs.with_open(&key.run_id, |log| {
            let id = log.append(key.attempt, event, data, &inner.limits)?;
            inner.spill_if_full(log);
            Ok((id, log.viewers()))
        })?;
        viewers.tell();
        Ok(id)
    }

    async fn publish_terminal(
        &self,
        key: &StreamKey,
        kind: TerminalKind,
        data: Option<Bytes>,
    ) -> Result<(), BridgeError> {
        let inner = &self.inner;
        inner.refuse_if_closed()?;
        let (log, bytes) = inner.runs.with_open(&key.run_id, |log| {
            let bytes = log.end(key.attempt, kind, data, &inner.limits)?;
            Ok((log.clone(), bytes))
        })?;
        inner.settle(log, bytes);
        Ok(())
    }

    async fn subscribe(
        &self,
        run_id: &RunId,
        from: ResumeFrom,
        heartbeat: Duration,
    ) -> Result<Subscription, BridgeError> {
        let inner = &self.inner;
        inner.refuse_if_closed()?;
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

    /// An open run is forgotten only after its end: until then its producer and its viewers need it.
    async fn cleanup(&self, run_id: &RunId, delay: Duration) {
        let now = Instant::now();
        // A moment that the clock cannot express never comes.
        if let (Some(at), Some(log)) = (now.checked_add(delay), self.inner.find(run_id)) {
            log.forget_at(at);
            self.inner.forget_if_due(&log);
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
            inner.settle(log, bytes);
        }
    }

    async fn mark_awaiting_input(&self, run_id: &RunId) {
        if let Some(log) = self.inner.find(run_id) {
            log.await_input();
        }
    }

    async fn start(&self) -> Result<(), BridgeError> {
        self.inner.refuse_if_closed()?;
        if !self.started.swap(true, Ordering::AcqRel) {
            let (inner, stop) = (self.inner.clone(), self.inner.tasks.token().clone());
            self.inner
                .tasks
                .spawn(TaskKind::Service, "memory bridge sweeper", async move {
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

    fn refuse_if_closed(&self) -> Result<(), BridgeError> {
        if self.is_closed() {
            Err(BridgeError::Closed)
        } else {
            Ok(())
        }
    }

    /// A run that is known and not due to be forgotten, whether or not the sweeper came by.
    fn find(&self, run_id: &RunId) -> Option<Arc<RunLog>> {
        let log = self.runs.get(run_id)?;
        if self.forget_if_due(&log) {
            None
        } else {
            Some(log)
        }
    }

    fn forget_if_due(&self, log: &Arc<RunLog>) -> bool {
        let now = Instant::now();
        let due = log.is_due(now, &self.options);
        if due {
            // Asked again under the map's lock: a publish may just have come.
            self.runs
                .forget_if(log, |log| log.is_due(now, &self.options));
        }
        due
    }

    /// Wakes the viewers of a run that has just ended, and makes room for what it left.
    fn settle(&self, log: Arc<RunLog>, bytes: usize) {
        log.viewers().tell();
        let evicted = self
            .ended
            .lock()
            .push(log, bytes, self.options.max_ended_bytes);
        for log in evicted {
            tracing::debug!(run_id = %log.run_id(), "ended run forgotten early, the budget for ended runs is used up");
            self.runs.forget_if(&log, |_| true);
            log.keep_newest_only();
        }
    }

    fn sweep(&self) {
        let now = Instant::now();
        self.runs.forget_where(|log| log.is_due(now, &self.options));
        // Freeing a large log takes a while: the lock is released first.
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
