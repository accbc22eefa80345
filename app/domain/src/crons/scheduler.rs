//! Starts due crons. Any number of nodes may run a scheduler over one store: each firing is claimed
//! by one of them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use deerflow_core::clock::Clock;
use deerflow_core::ids::RunId;
use deerflow_runtime::runs::store::StoreError;
use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Cron, CronStore, DueFiring, Schedule};

/// Reason why a firing created no run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// The run cannot be created, and a retry would not help.
    #[error("{0}")]
    Refused(String),
    /// A dependency was unavailable; a retry may succeed.
    #[error("{0}")]
    Unavailable(String),
}

/// Creates the run of a firing.
#[async_trait]
pub trait CronRunner: Send + Sync + std::fmt::Debug {
    /// Creates a run with this id for the cron's user. Succeeds if the run already exists.
    async fn start(&self, cron: &Cron, run: RunId) -> Result<(), StartError>;
}

/// Interval between polls of the store.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of firings handled concurrently, and fetched per poll.
const MAX_CONCURRENT_STARTS: usize = 16;
const BATCH: usize = 200;
/// Timeout of one start, and the age at which an unfinished claim may be taken over.
const START_TIMEOUT: Duration = Duration::from_secs(30);
const CLAIM_TIMEOUT: TimeDelta = TimeDelta::seconds(60);
/// Maximum delay of a firing after the cron's end; it leaves time for a takeover by another node.
const MAX_LATENESS: TimeDelta = TimeDelta::minutes(5);

/// Polls the store and starts due crons.
#[derive(Debug)]
pub struct Scheduler {
    store: Arc<dyn CronStore>,
    runner: Arc<dyn CronRunner>,
    clock: Arc<dyn Clock>,
}

impl Scheduler {
    /// Creates a scheduler for the crons in `store`.
    pub fn new(
        store: Arc<dyn CronStore>,
        runner: Arc<dyn CronRunner>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            store,
            runner,
            clock,
        }
    }

    /// Polls the store until `stop`. Firings claimed before that are completed.
    pub async fn run(self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            if let Err(error) = self.poll().await {
                tracing::warn!(%error, "cannot read due crons");
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(POLL_INTERVAL) => {}
            }
        }
    }

    /// Handles all firings that are due now.
    pub async fn poll(&self) -> Result<(), StoreError> {
        let now = self.clock.now();
        let due = self.store.due(now, now - CLAIM_TIMEOUT, BATCH).await?;
        futures_util::stream::iter(due)
            .for_each_concurrent(MAX_CONCURRENT_STARTS, |due| self.fire(due, now))
            .await;
        Ok(())
    }

    async fn fire(&self, due: DueFiring, now: DateTime<Utc>) {
        let cron = &due.cron;
        // Missed firings are skipped: the next one is always in the future.
        let schedule = Schedule::parse(&cron.schedule, cron.timezone.as_deref());
        let next = schedule
            .ok()
            .and_then(|schedule| schedule.next(now.max(due.fires_for), cron.end_time));
        match self.store.claim(&due, next, now).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                return tracing::warn!(%error, cron = %cron.cron_id, "cannot claim a due cron");
            }
        }
        let run = run_id_of(cron.cron_id, due.fires_for);
        if !may_fire(&due, now) {
            tracing::info!(cron = %cron.cron_id, fires_for = %due.fires_for, "dropped an expired firing");
            return self.finish(&due).await;
        }
        let started =
            tokio::time::timeout(START_TIMEOUT, self.runner.start(cron, run.clone())).await;
        let timed_out = || {
            StartError::Unavailable(format!(
                "the start timed out after {} s",
                START_TIMEOUT.as_secs()
            ))
        };
        match started.unwrap_or_else(|_| Err(timed_out())) {
            Ok(()) => {
                tracing::info!(cron = %cron.cron_id, %run, fires_for = %due.fires_for, "cron started its run")
            }
            Err(error @ StartError::Refused(_)) => {
                tracing::warn!(%error, cron = %cron.cron_id, fires_for = %due.fires_for, "cron run was refused");
            }
            Err(error @ StartError::Unavailable(_)) => {
                return tracing::warn!(%error, cron = %cron.cron_id, "cron run could not start yet, retrying");
            }
        }
        self.finish(&due).await;
    }

    async fn finish(&self, due: &DueFiring) {
        let cron = due.cron.cron_id;
        if let Err(error) = self.store.finish(cron, due.fires_for).await {
            tracing::warn!(%error, %cron, "cannot mark a firing as finished, it will be retried");
        }
    }
}

/// Reports whether a firing is still valid: its cron is enabled, and it is not long past the cron's
/// end.
fn may_fire(due: &DueFiring, now: DateTime<Utc>) -> bool {
    let is_over = due.cron.end_time.is_some_and(|end| end < now);
    due.cron.enabled && !(is_over && now - due.fires_for > MAX_LATENESS)
}

/// Derives the run id of a firing, so a repeated start creates the same run.
fn run_id_of(cron: Uuid, fires_for: DateTime<Utc>) -> RunId {
    Uuid::new_v5(
        &cron,
        fires_for
            .to_rfc3339_opts(SecondsFormat::Micros, true)
            .as_bytes(),
    )
    .into()
}

#[cfg(test)]
#[path = "scheduler_tests.rs"]
mod tests;
