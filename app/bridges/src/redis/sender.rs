//! Brings what an owner published to the server: one sender per run, while there is something to send.

use std::sync::Arc;
use std::time::Duration;

use metrics::histogram;
use tokio::time::Instant;

use super::inner::Inner;
use super::log::RunLog;
use harness::runtime::fail_points;

/// Events that come within this of the last append go together.
const GATHER_FOR: Duration = Duration::from_millis(10);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

impl Inner {
    /// Sends until nothing is left. A server out of order is asked again and again; the run does not notice.
    pub(super) async fn send(self: Arc<Self>, log: Arc<RunLog>) {
        if self.tasks.token().run_until_cancelled(self.send_all(&log)).await.is_none() {
            log.stop_work();
        } else if !log.is_owned() {
            // It ended, or another node has it: the server answers for it from now on.
            self.runs.forget(&log);
        }
    }

    async fn send_all(&self, log: &RunLog) {
        let mut pause = FIRST_PAUSE;
        while let Some(append) = log.next_append() {
            let began = Instant::now();
            fail_points::pass("stream.gathered");
            match self.around.link.append(log.run_id(), &append).await {
                Ok(reply) => {
                    fail_points::pass("stream.appended");
                    histogram!("deerflow_publish_seconds").record(began.elapsed());
                    pause = FIRST_PAUSE;
                    log.settle(&append, reply);
                    log.ring();
                    gather(log, began).await;
                }
                Err(outage) => {
                    tracing::debug!(run_id = %log.run_id(), %outage, "events wait for redis");
                    log.fail();
                    log.ring();
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
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
