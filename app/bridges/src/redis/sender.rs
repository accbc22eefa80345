//! Brings what an owner published to the server: one sender per run, while there is something to send.

use std::sync::Arc;
use std::time::Duration;

use harness::ids::RunId;
use harness::runtime::fail_points;
use harness::runtime::stream_bridge::LogOutline;
use metrics::histogram;
use tokio::time::{Instant, timeout};

use super::inner::Inner;
use super::lane::Outage;
use super::link::{Append, Reply};
use super::log::RunLog;

/// Events that come within this of the last append go together.
const GATHER_FOR: Duration = Duration::from_millis(10);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

impl Inner {
    /// Sends until nothing is left. A server out of order is asked again and again; the run does not notice.
    pub(super) async fn send(self: Arc<Self>, log: Arc<RunLog>) {
        if self
            .tasks
            .token()
            .run_until_cancelled(self.send_all(&log))
            .await
            .is_none()
        {
            log.stop_work();
        } else if !log.is_owned() {
            // It ended, or another node has it: the server answers for it from now on.
            self.runs.forget(&log);
        }
    }

    /// The next thing to send. What this node does not hold, and the server not either, comes from the durable log.
    async fn next_append(&self, log: &RunLog) -> Option<Append> {
        while let Some(from) = log.refill() {
            if let Some(append) = self.refilled(log, from).await {
                return Some(append);
            }
        }
        log.next_append()
    }

    async fn send_all(self: &Arc<Self>, log: &Arc<RunLog>) {
        let mut pause = FIRST_PAUSE;
        while let Some(append) = self.next_append(log).await {
            let began = Instant::now();
            fail_points::pass("stream.gathered");
            match self.append(log, &append).await {
                Ok(reply) => {
                    fail_points::pass("stream.appended");
                    histogram!("deerflow_publish_seconds").record(began.elapsed());
                    pause = FIRST_PAUSE;
                    log.settle(&append, reply);
                    log.ring();
                    self.spill_for(log);
                    gather(log, began).await;
                }
                Err(outage) => {
                    tracing::debug!(run_id = %log.run_id(), %outage, "events wait for redis");
                    self.note_outage(log);
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }
}

impl Inner {
    async fn append(self: &Arc<Self>, log: &Arc<RunLog>, append: &Append) -> Result<Reply, Outage> {
        let logged = match append.attempt.filter(|_| append.before.is_none()) {
            Some(attempt) => self.logged(log.run_id(), attempt).await?,
            None => LogOutline::default(),
        };
        let answer = self.around.link.append(log.run_id(), append);
        tokio::pin!(answer);
        let reply = match timeout(self.around.options.slow_after, &mut answer).await {
            Ok(reply) => reply?,
            Err(_) => {
                self.note_outage(log);
                answer.await?
            }
        };
        Ok(Reply { logged, ..reply })
    }

    /// What the durable log has of a stream that `attempt` is about to claim: the first one begins it, and to later ones nobody adds.
    pub(super) async fn logged(&self, run_id: &RunId, attempt: u32) -> Result<LogOutline, Outage> {
        match attempt {
            0..=1 => Ok(LogOutline::default()),
            _ => self
                .around
                .logged(run_id)
                .await
                .map_err(|error| Outage::because(error.to_string())),
        }
    }

    fn note_outage(self: &Arc<Self>, log: &Arc<RunLog>) {
        log.fail();
        log.ring();
        self.spill_for(log);
    }
}

/// Waits for company, unless a batch is full or somebody waits.
async fn gather(log: &RunLog, began: Instant) {
    let deadline = tokio::time::sleep_until(began + GATHER_FOR);
    tokio::pin!(deadline);
    while log.may_gather() {
        tokio::select! {
            () = &mut deadline => return,
            () = log.urge.notified() => {}
        }
    }
}
