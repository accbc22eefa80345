//! Stream bridge of one process: an event log per run, in memory.

mod burst;
mod entries;
mod entry;
mod limits;
mod log;
mod options;
mod pack;
mod run_logs;
mod shared;
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

use self::limits::Limits;
use self::log::Located;
pub use self::options::{InMemoryOptions, InvalidOption};
use self::run_logs::RunLogs;
use self::shared::Shared;
use self::viewer::Viewer;

/// In-memory stream bridge. A publish takes one short lock on its run's log and wakes the waiting
/// viewers; viewers share the log and read it in batches at their own pace. A viewer whose events
/// follow each other closely takes those of two milliseconds together; the end of the run and the
/// first event after a silence are never delayed.
///
/// The bridge has a log of each run from its first publish (or its cancellation). The log is
/// removed after the end of the run: after the clean-up delay, after the retention, or when the
/// ended runs exceed their budget. Whole runs are retained while they are active, up to the limits
/// of [`InMemoryOptions`]. Events beyond the limits are written to a durable log, if there is one,
/// concurrently with the producer, and viewers read them there.
pub struct InMemoryStreamBridge {
    shared: Arc<Shared>,
    started: AtomicBool,
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
        let shared = Shared {
            options,
            limits,
            durable,
            tasks,
            runs,
            ended,
            closed,
        };
        Ok(Self {
            shared: Arc::new(shared),
            started: AtomicBool::new(false),
        })
    }
}

impl fmt::Debug for InMemoryStreamBridge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InMemoryStreamBridge")
            .field("options", &self.shared.options)
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
        let shared = &self.shared;
        shared.ensure_open()?;
        let (id, change, log) = shared.runs.with_open(&key.run_id, |log| {
            let (id, change) = log.append(key.attempt, event, data, &shared.limits)?;
            shared.spill_if_full(log);
            Ok((id, change, log.clone()))
        })?;
        log.notify(change);
        Ok(id)
    }

    async fn publish_terminal(
        &self,
        key: &StreamKey,
        kind: TerminalKind,
        data: Option<Bytes>,
    ) -> Result<(), BridgeError> {
        let shared = &self.shared;
        shared.ensure_open()?;
        let (log, bytes) = shared.runs.with_open(&key.run_id, |log| {
            let bytes = log.end(key.attempt, kind, data, &shared.limits)?;
            Ok((log.clone(), bytes))
        })?;
        shared.on_run_ended(log, bytes);
        Ok(())
    }

    async fn subscribe(
        &self,
        run_id: &RunId,
        from: ResumeFrom,
        heartbeat: Duration,
    ) -> Result<Subscription, BridgeError> {
        let shared = &self.shared;
        shared.ensure_open()?;
        let Some(log) = shared.find(run_id) else {
            return Ok(Subscription {
                resume: ResumeResult::Unknown,
                items: stream::empty().boxed(),
            });
        };
        let located = match log.locate(from) {
            Located::Gap(gap) => shared
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
                let items = Viewer::new(log, shared, from, seq, heartbeat).boxed();
                Subscription { resume, items }
            }
        })
    }

    /// Sets the expiry of the log. The log of an active run is removed only after the end of the
    /// run, because its producer and its viewers use it.
    async fn cleanup(&self, run_id: &RunId, delay: Duration) {
        let now = Instant::now();
        // A delay beyond the range of the clock means never.
        if let (Some(at), Some(log)) = (now.checked_add(delay), self.shared.find(run_id)) {
            log.expire_at(at);
            self.shared.remove_if_expired(&log);
        }
    }

    async fn cancel(&self, run_id: &RunId) {
        let shared = &self.shared;
        if shared.is_closed() {
            return;
        }
        if let (log, Some(bytes)) = shared
            .runs
            .with_open(run_id, |log| (log.clone(), log.cancel()))
        {
            shared.on_run_ended(log, bytes);
        }
    }

    async fn mark_awaiting_input(&self, run_id: &RunId) {
        if let Some(log) = self.shared.find(run_id) {
            log.await_input();
        }
    }

    async fn start(&self) -> Result<(), BridgeError> {
        self.shared.ensure_open()?;
        if !self.started.swap(true, Ordering::AcqRel) {
            let (shared, stop) = (self.shared.clone(), self.shared.tasks.token().clone());
            self.shared
                .tasks
                .spawn(TaskKind::Service, "in-memory bridge sweeper", async move {
                    while stop
                        .run_until_cancelled(tokio::time::sleep(shared.options.sweep_interval))
                        .await
                        .is_some()
                    {
                        shared.sweep();
                    }
                });
        }
        Ok(())
    }

    async fn close(&self) {
        self.shared.closed.store(true, Ordering::Release);
        self.shared.runs.clear();
        self.shared.tasks.shut_down().await;
    }
}

#[cfg(test)]
mod burst_tests;
#[cfg(test)]
mod contract_tests;
#[cfg(test)]
mod random_tests;
#[cfg(test)]
mod tests;
