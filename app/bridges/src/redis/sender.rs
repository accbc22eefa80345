//! Sends published events to the server: one sender task per run, while there are unsent events.

use std::sync::Arc;
use std::time::Duration;

use deerflow_core::fail_points;
use deerflow_core::ids::RunId;
use deerflow_runtime::stream_bridge::LogOutline;
use metrics::histogram;
use tokio::time::{Instant, timeout};

use super::connection::Outage;
use super::protocol::{Append, Reply};
use super::run_log::RunLog;
use super::shared::BridgeShared;

/// Events that arrive within this time after the last append are sent together.
const BATCH_WINDOW: Duration = Duration::from_millis(10);
const MIN_BACKOFF: Duration = Duration::from_millis(50);
const MAX_BACKOFF: Duration = Duration::from_millis(500);

impl BridgeShared {
    /// Sends until all events are sent. Retries while the server is unavailable; the run is not
    /// affected.
    pub(super) async fn send(self: Arc<Self>, log: Arc<RunLog>) {
        if self
            .tasks
            .token()
            .run_until_cancelled(self.send_all(&log))
            .await
            .is_none()
        {
            log.release_sending();
        } else if !log.is_publisher() {
            // The stream ended, or another node publishes it: from now on the server has the state.
            self.runs.remove(&log);
        }
    }

    /// Returns the next append. Events that neither this node nor the server has are read from the
    /// durable log.
    async fn next_append(&self, log: &RunLog) -> Option<Append> {
        while let Some(from) = log.refill() {
            if let Some(append) = self.refilled(log, from).await {
                return Some(append);
            }
        }
        log.next_append()
    }

    async fn send_all(self: &Arc<Self>, log: &Arc<RunLog>) {
        let mut backoff = MIN_BACKOFF;
        while let Some(append) = self.next_append(log).await {
            let began = Instant::now();
            fail_points::pass("stream.gathered");
            match self.append(log, &append).await {
                Ok(reply) => {
                    fail_points::pass("stream.appended");
                    histogram!("deerflow_publish_seconds").record(began.elapsed());
                    backoff = MIN_BACKOFF;
                    log.apply_reply(&append, reply);
                    log.notify_viewers();
                    self.spill_for(log);
                    wait_for_batch(log, began).await;
                }
                Err(outage) => {
                    tracing::debug!(run_id = %log.run_id(), %outage, "redis is unavailable, events are queued");
                    self.note_outage(log);
                    tokio::time::sleep(backoff).await;
                    backoff = (backoff * 2).min(MAX_BACKOFF);
                }
            }
        }
    }
}

impl BridgeShared {
    async fn append(self: &Arc<Self>, log: &Arc<RunLog>, append: &Append) -> Result<Reply, Outage> {
        let logged = match append.attempt.filter(|_| append.before.is_none()) {
            Some(attempt) => self.logged(log.run_id(), attempt).await?,
            None => LogOutline::default(),
        };
        let answer = self.sources.client.append(log.run_id(), append);
        tokio::pin!(answer);
        let reply = match timeout(self.sources.options.slow_after, &mut answer).await {
            Ok(reply) => reply?,
            Err(_) => {
                self.note_outage(log);
                answer.await?
            }
        };
        Ok(Reply { logged, ..reply })
    }

    /// Returns the outline of a stream that `attempt` is about to claim, as the durable log has it.
    /// The outline is empty for the first attempt.
    pub(super) async fn logged(&self, run_id: &RunId, attempt: u32) -> Result<LogOutline, Outage> {
        match attempt {
            0..=1 => Ok(LogOutline::default()),
            _ => self
                .sources
                .logged(run_id)
                .await
                .map_err(|error| Outage::new(error.to_string())),
        }
    }

    fn note_outage(self: &Arc<Self>, log: &Arc<RunLog>) {
        log.note_failure();
        log.notify_viewers();
        self.spill_for(log);
    }
}

/// Waits for more events, unless a batch is full or a caller waits.
async fn wait_for_batch(log: &RunLog, began: Instant) {
    let deadline = tokio::time::sleep_until(began + BATCH_WINDOW);
    tokio::pin!(deadline);
    while log.may_batch() {
        tokio::select! {
            () = &mut deadline => return,
            () = log.sender_wakeup.notified() => {}
        }
    }
}
