//! Task that writes a run's events to the durable log, and reads them back when the server lost
//! them.

use std::sync::Arc;
use std::time::Duration;

use deerflow_core::tasks::TaskKind;
use deerflow_runtime::stream_bridge::{LogBatch, StreamLog, StreamLogError};
use tokio::time::{Instant, sleep, timeout};

use super::protocol::Append;
use super::publisher::MAX_APPEND_EVENTS;
use super::run_log::RunLog;
use super::shared::BridgeShared;
use super::spill::{SPILL_INTERVAL, SpillStep};

/// Time after which a log that does not answer counts as unavailable; the write is retried after
/// the delay.
const APPEND_TIMEOUT: Duration = Duration::from_secs(2);
const RETRY_DELAY: Duration = Duration::from_millis(500);

impl BridgeShared {
    /// Starts a spill task for `log` if there are events to write. The task runs concurrently with
    /// the sender.
    pub(super) fn spill_for(self: &Arc<Self>, log: &Arc<RunLog>) {
        if let Some(durable) = self
            .sources
            .durable
            .as_ref()
            .filter(|_| log.begin_spill(&self.sources.options))
        {
            let (shared, log, durable) = (self.clone(), log.clone(), durable.clone());
            self.tasks
                .spawn(TaskKind::Finish, "stream spill", async move {
                    shared
                        .tasks
                        .token()
                        .run_until_cancelled(shared.spill_all(&log, &*durable))
                        .await;
                });
        }
    }

    async fn spill_all(&self, log: &RunLog, durable: &dyn StreamLog) {
        loop {
            match log.locked(|state| state.next_spill(log.run_id(), &self.sources.options)) {
                SpillStep::Nothing => return,
                SpillStep::Wait(backoff) => sleep(backoff).await,
                SpillStep::Write(batch) => {
                    let (tail, ended, complete) = (
                        batch.tail(),
                        batch.end.is_some(),
                        batch.events.len() < MAX_APPEND_EVENTS,
                    );
                    if self.write(log, durable, batch).await {
                        log.spilled(tail, ended);
                        log.notify_viewers();
                        if complete {
                            sleep(SPILL_INTERVAL).await;
                        }
                    }
                }
                SpillStep::Copy(first, count) => self.copy(log, durable, first, count).await,
            }
        }
    }

    /// Copies the server's oldest events to the log before the server trims them.
    async fn copy(&self, log: &RunLog, durable: &dyn StreamLog, first: u64, count: usize) {
        let Ok(snapshot) = self
            .sources
            .client
            .read_stream(log.run_id(), Some((first, count)))
            .await
        else {
            return sleep(RETRY_DELAY).await;
        };
        let events: Vec<_> = (first..)
            .zip(snapshot.events)
            .take_while(|(seq, event)| event.id.seq == *seq)
            .map(|(_, event)| event)
            .collect();
        let Some(attempt) = events.last().map(|event| event.id.attempt) else {
            // The server lost the events; the publisher detects that by itself.
            return sleep(RETRY_DELAY).await;
        };
        let attempt = log.locked(|state| {
            state
                .publisher
                .as_ref()
                .map_or(attempt, |publisher| publisher.attempt)
        });
        let batch = LogBatch {
            run_id: log.run_id().clone(),
            attempt,
            before: first - 1,
            events,
            end: None,
        };
        let tail = batch.tail();
        if self.write(log, durable, batch).await {
            log.copied(tail);
        }
    }

    async fn write(&self, log: &RunLog, durable: &dyn StreamLog, batch: LogBatch) -> bool {
        let Ok(_permit) = self.spills.acquire().await else {
            return false;
        };
        let run_id = log.run_id();
        match timeout(APPEND_TIMEOUT, durable.append(batch)).await {
            Ok(Ok(())) => return true,
            Ok(Err(StreamLogError::Store(error))) => {
                tracing::warn!(%run_id, %error, "the durable log refuses a write, trying again")
            }
            Ok(Err(StreamLogError::Fenced { current, .. })) => {
                log.fenced_by(current);
                log.notify_viewers();
                return false;
            }
            Ok(Err(refused)) => {
                tracing::debug!(%run_id, %refused, "the durable log does not accept events of this run");
                log.with_spilling(|spilling| spilling.accepted = false);
                log.notify_viewers();
                return false;
            }
            Err(_) => tracing::warn!(%run_id, "the durable log does not answer"),
        }
        log.with_spilling(|spilling| spilling.failing = true);
        log.notify_viewers();
        sleep(RETRY_DELAY).await;
        false
    }

    /// Reads the events from the durable log that neither the server nor this node has; `None` if
    /// the log lacks them too.
    pub(super) async fn refilled(&self, log: &RunLog, from: u64) -> Option<Append> {
        let durable = self.sources.durable.as_ref()?;
        let began = Instant::now();
        loop {
            match durable.read(log.run_id(), from, MAX_APPEND_EVENTS).await {
                Ok(page) => return log.refill_with(from, page.events),
                Err(error) if began.elapsed() >= self.sources.options.loss_timeout => {
                    tracing::warn!(run_id = %log.run_id(), %error, "cannot read a part of a stream from the durable log, viewers get a gap");
                    return log.refill_with(from, Vec::new());
                }
                Err(_) => sleep(RETRY_DELAY).await,
            }
        }
    }
}
