//! What the bridge, its senders and its reader share.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use harness::ids::RunId;
use harness::runtime::stream_bridge::{BridgeError, LogOutline, StreamKey};
use harness::runtime::tasks::{TaskKind, Tasks};
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};

use super::lane::Outage;
use super::link::{Append, Reply, Verdict};
use super::log::RunLog;
use super::outline::Outline;
use super::runs::Runs;
use super::viewer::Surroundings;

/// Who must see what was published before waits no longer than this.
const SETTLE_LIMIT: Duration = Duration::from_secs(2);
const CANCEL_PAUSE: Duration = Duration::from_millis(250);

pub(super) struct Inner {
    pub(super) around: Surroundings,
    pub(super) runs: Runs,
    pub(super) tasks: Tasks,
    /// Runs whose bell rang, to be looked at.
    pub(super) bells: Mutex<HashSet<RunId>>,
    pub(super) rang: Notify,
    pub(super) policy_judged: AtomicBool,
    /// Places for writes to the durable log.
    pub(super) spills: Semaphore,
    /// Places for reading on in it.
    pub(super) log_reads: Semaphore,
}

impl Inner {
    pub(super) fn refuse_if_closed(&self) -> Result<(), BridgeError> {
        if self.around.closed.load(Ordering::Acquire) {
            Err(BridgeError::Closed)
        } else {
            Ok(())
        }
    }

    /// Makes `key` the owner of its stream. A server out of order is asked later, by who sends.
    pub(super) async fn claim(
        self: &Arc<Self>,
        key: &StreamKey,
    ) -> Result<Arc<RunLog>, BridgeError> {
        let (log, _) = self.runs.open(&key.run_id, Outline::default);
        log.may_claim(key.attempt)?;
        self.settled(&log).await;
        let claim = async {
            let logged = self.logged(&key.run_id, key.attempt).await?;
            let reply = self
                .around
                .link
                .append(&key.run_id, &Append::claim(key.attempt))
                .await?;
            Ok::<_, Outage>(Reply { logged, ..reply })
        };
        let asked = tokio::time::timeout(self.around.options.claim_patience, claim).await;
        let (known, logged) = match asked {
            Ok(Ok(Reply {
                verdict: verdict @ (Verdict::Fenced | Verdict::Ended),
                outline,
                ..
            })) => {
                let (run_id, attempt, current) = (key.run_id.clone(), key.attempt, outline.attempt);
                log.learn(outline);
                log.ring();
                return Err(match verdict {
                    Verdict::Fenced => BridgeError::Fenced {
                        run_id,
                        attempt,
                        current,
                    },
                    _ => BridgeError::Ended(run_id),
                });
            }
            Ok(Ok(reply)) => (Some(reply.outline), reply.logged),
            Ok(Err(_)) | Err(_) => (None, LogOutline::default()),
        };
        log.own(key.attempt, known, &logged);
        self.runs.keep(&log);
        log.ring();
        Ok(log)
    }

    /// Has what waits in `log` sent.
    pub(super) fn work_on(self: &Arc<Self>, log: &Arc<RunLog>) {
        if log.begin_work() {
            self.tasks.spawn(
                TaskKind::Finish,
                "stream sender",
                self.clone().send(log.clone()),
            );
        }
    }

    /// Waits until the server has what was published so far, or is known to be out of order.
    pub(super) async fn settled(&self, log: &RunLog) {
        let wait = async {
            let mut changes = log.listen();
            while !log.is_settled() {
                changes.next().await;
            }
        };
        if tokio::time::timeout(SETTLE_LIMIT, wait).await.is_err() {
            tracing::debug!(run_id = %log.run_id(), "redis is slow, its answer was not waited for");
        }
    }

    /// Ends a stream that this node does not own, however long the server takes.
    pub(super) async fn cancel_elsewhere(self: &Arc<Self>, run_id: &RunId) {
        let (inner, run_id) = (self.clone(), run_id.clone());
        let work = async move {
            let cancel = async {
                while let Err(outage) = inner.around.link.append(&run_id, &Append::cancel()).await {
                    tracing::debug!(%run_id, %outage, "a cancelled stream cannot be ended yet");
                    tokio::time::sleep(CANCEL_PAUSE).await;
                }
            };
            inner.tasks.token().run_until_cancelled(cancel).await;
            if let Some(log) = inner.runs.get(&run_id) {
                inner.wake_for(&log);
            }
        };
        let task = self.tasks.spawn(TaskKind::Finish, "stream cancel", work);
        if tokio::time::timeout(SETTLE_LIMIT, task).await.is_err() {
            tracing::warn!(
                "a run was cancelled while redis is out of order; its stream ends when it is back"
            );
        }
    }

    /// Whether this server may lose streams when its memory is full; looked at until it answers once.
    pub(super) async fn judge_policy_once(&self) {
        if self.policy_judged.load(Ordering::Acquire) {
            return;
        }
        if let Ok(policy) = self.around.link.eviction_policy().await {
            self.policy_judged.store(true, Ordering::Release);
            if policy != super::SAFE_POLICY {
                tracing::error!(%policy, "redis may evict streams: set maxmemory-policy to noeviction");
            }
        }
    }
}
