//! State shared by the bridge, its senders and its poller.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deerflow_core::ids::RunId;
use deerflow_core::tasks::{TaskKind, Tasks};
use deerflow_runtime::stream_bridge::{BridgeError, LogOutline, StreamKey};
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};

use super::client::SAFE_POLICY;
use super::connection::Outage;
use super::protocol::{Append, AppendOutcome, Reply};
use super::run_log::RunLog;
use super::run_logs::RunLogs;
use super::stream_head::StreamHead;
use super::viewer::StreamSources;

/// Maximum time that a caller waits for its events to reach the server.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(2);
const CANCEL_RETRY_DELAY: Duration = Duration::from_millis(250);

pub(super) struct BridgeShared {
    pub(super) sources: StreamSources,
    pub(super) runs: RunLogs,
    pub(super) tasks: Tasks,
    /// Runs to poll because of a signal.
    pub(super) woken_runs: Mutex<HashSet<RunId>>,
    pub(super) wakeup: Notify,
    pub(super) policy_checked: AtomicBool,
    /// Permits for writes to the durable log.
    pub(super) spills: Semaphore,
    /// Permits for reads of the durable log.
    pub(super) log_reads: Semaphore,
}

impl BridgeShared {
    pub(super) fn refuse_if_closed(&self) -> Result<(), BridgeError> {
        if self.sources.closed.load(Ordering::Acquire) {
            Err(BridgeError::Closed)
        } else {
            Ok(())
        }
    }

    /// Makes `key` the publisher of its stream. If the server is unavailable, the sender claims the
    /// stream later.
    pub(super) async fn claim(
        self: &Arc<Self>,
        key: &StreamKey,
    ) -> Result<Arc<RunLog>, BridgeError> {
        let (log, _) = self.runs.open(&key.run_id, StreamHead::default);
        log.may_claim(key.attempt)?;
        self.wait_settled(&log).await;
        let claim = async {
            let logged = self.logged(&key.run_id, key.attempt).await?;
            let reply = self
                .sources
                .client
                .append(&key.run_id, &Append::claim(key.attempt))
                .await?;
            Ok::<_, Outage>(Reply { logged, ..reply })
        };
        let claimed = tokio::time::timeout(self.sources.options.claim_timeout, claim).await;
        let (known, logged) = match claimed {
            Ok(Ok(Reply {
                outcome: outcome @ (AppendOutcome::Fenced | AppendOutcome::Ended),
                head,
                ..
            })) => {
                let (run_id, attempt, current) = (key.run_id.clone(), key.attempt, head.attempt);
                log.adopt_if_newer(head);
                log.notify_viewers();
                return Err(match outcome {
                    AppendOutcome::Fenced => BridgeError::Fenced {
                        run_id,
                        attempt,
                        current,
                    },
                    _ => BridgeError::Ended(run_id),
                });
            }
            Ok(Ok(reply)) => (Some(reply.head), reply.logged),
            Ok(Err(_)) | Err(_) => (None, LogOutline::default()),
        };
        log.become_publisher(key.attempt, known, &logged);
        self.runs.insert(&log);
        log.notify_viewers();
        Ok(log)
    }

    /// Starts a sender for `log` if none is running.
    pub(super) fn ensure_sender(self: &Arc<Self>, log: &Arc<RunLog>) {
        if log.claim_sending() {
            self.tasks.spawn(
                TaskKind::Finish,
                "stream sender",
                self.clone().send(log.clone()),
            );
        }
    }

    /// Waits until the server has all published events, or is known to be unavailable.
    pub(super) async fn wait_settled(&self, log: &RunLog) {
        let wait = async {
            let mut changes = log.subscribe_changes();
            while !log.is_settled() {
                changes.next().await;
            }
        };
        if tokio::time::timeout(SETTLE_TIMEOUT, wait).await.is_err() {
            tracing::debug!(run_id = %log.run_id(), "redis is slow, not waiting for its answer");
        }
    }

    /// Ends a stream that this node does not publish. Retries in a task until the server answers.
    pub(super) async fn cancel_elsewhere(self: &Arc<Self>, run_id: &RunId) {
        let (shared, run_id) = (self.clone(), run_id.clone());
        let work = async move {
            let cancel = async {
                while let Err(outage) = shared
                    .sources
                    .client
                    .append(&run_id, &Append::cancel())
                    .await
                {
                    tracing::debug!(%run_id, %outage, "cannot end a cancelled stream yet, trying again");
                    tokio::time::sleep(CANCEL_RETRY_DELAY).await;
                }
            };
            shared.tasks.token().run_until_cancelled(cancel).await;
            if let Some(log) = shared.runs.get(&run_id) {
                shared.schedule_poll(&log);
            }
        };
        let task = self.tasks.spawn(TaskKind::Finish, "stream cancel", work);
        if tokio::time::timeout(SETTLE_TIMEOUT, task).await.is_err() {
            tracing::warn!(
                "a run was cancelled while redis is unavailable; its stream ends when redis is back"
            );
        }
    }

    /// Checks the server's eviction policy, and logs an error if the server may evict streams.
    /// After the server's first answer, later calls have no effect.
    pub(super) async fn check_policy_once(&self) {
        if self.policy_checked.load(Ordering::Acquire) {
            return;
        }
        if let Ok(policy) = self.sources.client.eviction_policy().await {
            self.policy_checked.store(true, Ordering::Release);
            if policy != SAFE_POLICY {
                tracing::error!(%policy, "redis may evict streams: set maxmemory-policy to noeviction");
            }
        }
    }
}
