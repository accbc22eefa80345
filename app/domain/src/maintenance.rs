//! Deletion of expired data: idempotency keys, dead letters, events of finished streams, unused
//! contents of flows, ended sessions, attempts to sign in, old audit entries, and, if configured, the
//! journal of old runs and old checkpoints.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use deerflow_core::clock::Clock;
use deerflow_core::ids::ThreadId;
use deerflow_runtime::checkpoint::{CheckpointError, Checkpointer, HistoryRetention};
use deerflow_runtime::runs::store::{RequestStore, StoreError, WebhookOutbox};

use crate::accounts::AccountStores;
use crate::flows::FlowStore;

/// Retention times of data that has no other end of life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Webhook calls that could not be delivered.
    pub dead_letters: TimeDelta,
    /// Stream events in the durable log, counted from the end of their run.
    pub streams: TimeDelta,
    /// Journals of finished runs, counted from the end of the run; unlimited if absent.
    pub run_events: Option<TimeDelta>,
    /// Checkpoints of threads; unlimited if absent.
    pub histories: Option<HistoryRule>,
    /// Entries of the audit log.
    pub audit: TimeDelta,
}

/// Rule that selects the checkpoints to retain per thread. The newest is always retained, and so is
/// the parent of each retained one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryRule {
    /// Number of newest checkpoints to retain.
    pub newest: u64,
    /// Also retains checkpoints younger than this number of days.
    pub days: Option<u64>,
}

/// One pass over all threads in order of their last state change, with the retention rule to apply.
struct Walk {
    name: String,
    until: DateTime<Utc>,
    keep: HistoryRetention,
}

impl HistoryRule {
    /// Returns the passes to make. A different rule has different names, so its passes start over.
    fn walks(self, now: DateTime<Utc>) -> Vec<Walk> {
        let since = self.days.map(|days| before(now, days_of(days)));
        let keep = HistoryRetention {
            newest: self.newest,
            since,
        };
        let rule = format!(
            "histories looked through: {} and {:?} days",
            self.newest, self.days
        );
        // A thread that changed a moment ago may still have uncommitted changes with the same time.
        let changed = Walk {
            name: rule.clone(),
            until: before(now, WRITE_DELAY_MARGIN),
            keep,
        };
        // All checkpoints of a thread unchanged for that long have reached the age limit.
        let at_rest = since.map(|until| Walk {
            name: format!("{rule}, at rest"),
            until,
            keep,
        });
        [changed].into_iter().chain(at_rest).collect()
    }
}

/// Converts days, saturating at the maximum duration.
pub fn days_of(days: u64) -> TimeDelta {
    i64::try_from(days)
        .ok()
        .and_then(TimeDelta::try_days)
        .unwrap_or(TimeDelta::MAX)
}

/// Thread with the time of its last state change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedThread {
    /// Time of the change.
    pub at: DateTime<Utc>,
    /// Thread id.
    pub thread: ThreadId,
}

/// Number of rows that one sweep deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// Idempotency keys.
    pub requests: usize,
    /// Dead letters.
    pub dead_letters: usize,
    /// Batches of stream events.
    pub batches: usize,
    /// Journal rows.
    pub events: usize,
    /// Checkpoints of pruned histories.
    pub checkpoints: usize,
    /// Contents of flows that nothing refers to.
    pub flow_contents: usize,
    /// Ended sessions, and attempts and addresses of sign-in.
    pub sign_ins: u64,
    /// Entries of the audit log.
    pub audit_entries: u64,
}

/// Storage operations of maintenance.
#[async_trait]
pub trait MaintenanceStore: Send + Sync + std::fmt::Debug {
    /// Acquires or renews a duty for `holder` for `ttl`, by the store's clock. Returns `false` if
    /// another holder has it.
    async fn acquire_duty(
        &self,
        duty: &str,
        holder: &str,
        ttl: Duration,
    ) -> Result<bool, StoreError>;

    /// Deletes up to `limit` journal rows of runs that ended at or before `before`. Returns their
    /// number.
    async fn delete_run_events(
        &self,
        before: DateTime<Utc>,
        limit: usize,
    ) -> Result<usize, StoreError>;

    /// Deletes up to `limit` event batches of runs that ended at or before `before`. Returns their
    /// number.
    async fn delete_streams(
        &self,
        before: DateTime<Utc>,
        limit: usize,
    ) -> Result<usize, StoreError>;

    /// Returns up to `limit` threads whose state last changed at or before `until`, in order of
    /// that time, after the stored position of the pass `walk`.
    async fn changed_threads(
        &self,
        walk: &str,
        until: DateTime<Utc>,
        limit: usize,
    ) -> Result<Vec<ChangedThread>, StoreError>;

    /// Stores the position of a pass.
    async fn save_walk_position(&self, walk: &str, up_to: &ChangedThread)
    -> Result<(), StoreError>;
}

/// Duty name of [`Maintenance`].
const DUTY: &str = "upkeep";
/// Time for which the duty is acquired; a longer sweep renews it.
const DUTY_TTL: Duration = Duration::from_secs(120);
/// Maximum number of rows per transaction.
const BATCH: usize = 200;
/// Maximum number of threads per step.
const THREADS_PER_STEP: usize = 50;
/// Age after which no transaction with an earlier timestamp can still commit.
const WRITE_DELAY_MARGIN: TimeDelta = TimeDelta::minutes(2);
/// Period for which a content of a flow stays after its last version is gone: a run that has read it
/// may not have pinned it yet.
const UNUSED_CONTENT_PERIOD: TimeDelta = TimeDelta::days(1);
/// Period for which an address from which an account signed in is exempt from limits.
const KNOWN_ADDRESS_PERIOD: TimeDelta = TimeDelta::days(180);
/// Pause between steps, to let other writers proceed.
const PAUSE: Duration = Duration::from_millis(50);

/// Deletes expired data, on one node at a time.
#[derive(Debug, Clone)]
pub struct Maintenance {
    /// Duties, journals and stream logs.
    pub store: Arc<dyn MaintenanceStore>,
    /// Idempotency keys.
    pub requests: Arc<dyn RequestStore>,
    /// Webhook calls.
    pub outbox: Arc<dyn WebhookOutbox>,
    /// Checkpoints to prune.
    pub checkpoints: Arc<dyn Checkpointer>,
    /// Contents of flows.
    pub flows: Arc<dyn FlowStore>,
    /// Sessions, attempts to sign in, and the audit log.
    pub accounts: AccountStores,
    /// Clock that decides what has expired.
    pub clock: Arc<dyn Clock>,
    /// Id of this process.
    pub holder: String,
}

impl Maintenance {
    /// Deletes everything that has expired by now, in small steps; returns `None` if another
    /// process holds the duty.
    pub async fn sweep(&self, rules: Retention) -> Result<Option<SweepReport>, StoreError> {
        let now = self.clock.now();
        let mut report = SweepReport::default();
        let mut is_first_step = true;
        loop {
            // Renewed at each step: a sweep may take long, and the duty moves to another process if
            // this one hangs.
            if !self
                .store
                .acquire_duty(DUTY, &self.holder, DUTY_TTL)
                .await?
            {
                return Ok((report != SweepReport::default()).then_some(report));
            }
            if std::mem::take(&mut is_first_step) {
                self.purge_accounts(now, rules.audit, &mut report).await?;
            }
            let requests = self.requests.sweep(now, BATCH).await?;
            let dead_letters = self
                .outbox
                .sweep(before(now, rules.dead_letters), BATCH)
                .await?;
            let batches = self
                .store
                .delete_streams(before(now, rules.streams), BATCH)
                .await?;
            let events = match rules.run_events {
                Some(stay) => {
                    self.store
                        .delete_run_events(before(now, stay), BATCH)
                        .await?
                }
                None => 0,
            };
            let contents = self
                .flows
                .sweep(before(now, UNUSED_CONTENT_PERIOD), BATCH)
                .await?;
            report.flow_contents += contents;
            report.requests += requests;
            report.dead_letters += dead_letters;
            report.batches += batches;
            report.events += events;
            let mut is_complete = true;
            for walk in rules
                .histories
                .map(|rule| rule.walks(now))
                .unwrap_or_default()
            {
                is_complete &= self.advance_walk(&walk, &mut report.checkpoints).await?;
            }
            let deleted = [requests, dead_letters, batches, events, contents];
            if is_complete && deleted.iter().all(|deleted| *deleted < BATCH) {
                return Ok(Some(report));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl Maintenance {
    /// Deletes what is left of sign-ins, and old audit entries.
    async fn purge_accounts(
        &self,
        now: DateTime<Utc>,
        audit: TimeDelta,
        report: &mut SweepReport,
    ) -> Result<(), StoreError> {
        let accounts = &self.accounts;
        report.sign_ins += accounts.sessions.purge(now).await?;
        let known = before(now, KNOWN_ADDRESS_PERIOD);
        report.sign_ins += accounts.limits.purge(now, known).await?;
        report.audit_entries += accounts.audit.purge(before(now, audit)).await?;
        Ok(())
    }

    /// Makes one step of a pass, and reports whether the pass is complete.
    async fn advance_walk(&self, walk: &Walk, report: &mut usize) -> Result<bool, StoreError> {
        let threads = self
            .store
            .changed_threads(&walk.name, walk.until, THREADS_PER_STEP)
            .await?;
        let (mut remaining, mut position) = (BATCH, None);
        for changed in &threads {
            let deleted = self
                .checkpoints
                .forget_history(&changed.thread, &walk.keep, remaining)
                .await
                .map_err(|error| match error {
                    CheckpointError::Store(error) => error,
                    other => StoreError::Failed(other.to_string()),
                })?;
            *report += deleted;
            remaining -= deleted.min(remaining);
            if remaining == 0 {
                // The thread may have more to delete.
                break;
            }
            position = Some(changed);
        }
        if let Some(position) = position {
            self.store.save_walk_position(&walk.name, position).await?;
        }
        Ok(remaining > 0 && threads.len() < THREADS_PER_STEP)
    }
}

/// Returns the time `span` before `now`.
fn before(now: DateTime<Utc>, span: TimeDelta) -> DateTime<Utc> {
    now.checked_sub_signed(span).unwrap_or(DateTime::UNIX_EPOCH)
}
