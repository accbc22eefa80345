//! The service that starts what is due. Any number of nodes may run it over one store: the store gives each firing to one of them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use futures_util::StreamExt;
use harness::clock::Clock;
use harness::ids::RunId;
use harness::runtime::runs::store::StoreError;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Cron, CronStore, Due, Schedule};

/// Why a firing made no run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// It cannot be made, now or later.
    #[error("{0}")]
    Refused(String),
    /// Something did not answer; a later try may succeed.
    #[error("{0}")]
    Unavailable(String),
}

/// Makes the run of a firing.
#[async_trait]
pub trait CronRunner: Send + Sync + std::fmt::Debug {
    /// Makes a run of this id for the cron's user. A run that is there already is a success.
    async fn start(&self, cron: &Cron, run: RunId) -> Result<(), StartError>;
}

/// How often the store is asked.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How many firings are seen to at once, and how many are asked for.
const AT_ONCE: usize = 16;
const BATCH: usize = 200;
/// How long a start may take, and when one that was never finished is taken over.
const START_LIMIT: Duration = Duration::from_secs(30);
const LOST_AFTER: TimeDelta = TimeDelta::seconds(60);
/// After a cron's end a firing of before may be so late: enough for another node to take it over.
const TOO_LATE: TimeDelta = TimeDelta::minutes(5);

/// Starts what is due.
#[derive(Debug)]
pub struct Scheduler {
    store: Arc<dyn CronStore>,
    runner: Arc<dyn CronRunner>,
    clock: Arc<dyn Clock>,
}

impl Scheduler {
    /// A scheduler of the crons in `store`.
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

    /// Looks at the store again and again until `stop`. What was taken by then is seen to its end.
    pub async fn run(self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            if let Err(error) = self.look().await {
                tracing::warn!(%error, "due crons cannot be read");
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }

    /// Sees to everything that is due now.
    pub async fn look(&self) -> Result<(), StoreError> {
        let now = self.clock.now();
        let due = self.store.due(now, now - LOST_AFTER, BATCH).await?;
        futures_util::stream::iter(due)
            .for_each_concurrent(AT_ONCE, |due| self.fire(due, now))
            .await;
        Ok(())
    }

    async fn fire(&self, due: Due, now: DateTime<Utc>) {
        let cron = &due.cron;
        // However many times were missed, the next one lies ahead.
        let schedule = Schedule::parse(&cron.schedule, cron.timezone.as_deref());
        let next = schedule
            .ok()
            .and_then(|schedule| schedule.next(now.max(due.fires_for), cron.end_time));
        match self.store.take(&due, next, now).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                return tracing::warn!(%error, cron = %cron.cron_id, "a due cron could not be taken");
            }
        }
        let run = run_of(cron.cron_id, due.fires_for);
        if !may_fire(&due, now) {
            tracing::info!(cron = %cron.cron_id, fires_for = %due.fires_for, "a firing that nobody saw to in time is dropped");
            return self.finish(&due).await;
        }
        let started = tokio::time::timeout(START_LIMIT, self.runner.start(cron, run.clone())).await;
        let late =
            || StartError::Unavailable(format!("it took longer than {} s", START_LIMIT.as_secs()));
        match started.unwrap_or_else(|_| Err(late())) {
            Ok(()) => {
                tracing::info!(cron = %cron.cron_id, %run, fires_for = %due.fires_for, "a cron started its run")
            }
            Err(error @ StartError::Refused(_)) => {
                tracing::warn!(%error, cron = %cron.cron_id, fires_for = %due.fires_for, "a cron could not start its run");
            }
            Err(error @ StartError::Unavailable(_)) => {
                return tracing::warn!(%error, cron = %cron.cron_id, "a cron could not start its run yet; it is tried again");
            }
        }
        self.finish(&due).await;
    }

    async fn finish(&self, due: &Due) {
        let cron = due.cron.cron_id;
        if let Err(error) = self.store.finish(cron, due.fires_for).await {
            tracing::warn!(%error, %cron, "a firing could not be marked as done; it is tried again");
        }
    }
}

/// Whether a firing still means something: not of a cron that was switched off since, and not long after the cron's end.
fn may_fire(due: &Due, now: DateTime<Utc>) -> bool {
    let is_over = due.cron.end_time.is_some_and(|end| end < now);
    due.cron.enabled && !(is_over && now - due.fires_for > TOO_LATE)
}

/// The id of a firing's run: whoever fires it, and however often, it is the same run.
fn run_of(cron: Uuid, fires_for: DateTime<Utc>) -> RunId {
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
