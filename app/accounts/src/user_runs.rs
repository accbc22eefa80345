//! Unfinished runs of a user whose account is deleted.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use deerflow_domain::accounts::{DeletedData, UserData};
use harness::clock::Clock;
use harness::ids::RunId;
use harness::runtime::actor_context::{ActorContext, Owner, scope};
use harness::runtime::runs::store::{RunCreateStore, RunQueryStore, StoreError};
use harness::runtime::runs::{CancelAction, RunError, RunQueries, RunsFacade};
use tokio::time::Instant;

/// Interval between reads of the unfinished runs.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum time for the runs to end. The process of a run learns of a cancel request within 10 s, a
/// queued run ends within 30 s.
const TIMEOUT: Duration = Duration::from_secs(40);

/// Control of the runs of all users.
#[async_trait]
pub trait RunControl: Send + Sync + std::fmt::Debug {
    /// Returns the unfinished runs of a user.
    async fn unfinished(&self, user: &str) -> Result<Vec<RunId>, StoreError>;

    /// Requests the end of a run. A run that has ended meanwhile is no error.
    async fn cancel(&self, user: &str, run: &RunId) -> Result<(), StoreError>;
}

/// Control by the stores: the processes of runs poll them.
#[derive(Debug)]
pub struct StoredRuns {
    /// Reads runs.
    pub query: Arc<dyn RunQueryStore>,
    /// Records cancel requests.
    pub cancels: Arc<dyn RunCreateStore>,
    /// Clock.
    pub clock: Arc<dyn Clock>,
}

#[async_trait]
impl RunControl for StoredRuns {
    async fn unfinished(&self, user: &str) -> Result<Vec<RunId>, StoreError> {
        let owner = Owner::User(user.to_owned());
        let runs = self.query.standing(None, &owner).await?;
        Ok(runs.into_iter().map(|run| run.run_id).collect())
    }

    async fn cancel(&self, _user: &str, run: &RunId) -> Result<(), StoreError> {
        let now = self.clock.now();
        let cancels = &self.cancels;
        cancels
            .request_cancel(run, CancelAction::Interrupt, now)
            .await
            .map(drop)
    }
}

/// Control by the runtime of this process, which stops its own runs at once.
#[async_trait]
impl RunControl for RunsFacade {
    async fn unfinished(&self, user: &str) -> Result<Vec<RunId>, StoreError> {
        let queries = RunQueries::new(self.runtime());
        let runs = scope(ActorContext::user(user), queries.unfinished(None)).await;
        Ok(runs
            .map_err(failed)?
            .into_iter()
            .map(|run| run.run_id)
            .collect())
    }

    async fn cancel(&self, user: &str, run: &RunId) -> Result<(), StoreError> {
        let cancel = RunsFacade::cancel(self, None, run, CancelAction::Interrupt, false);
        match scope(ActorContext::user(user), cancel).await {
            Ok(_) | Err(RunError::NotFound(_) | RunError::NotCancellable { .. }) => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }
}

fn failed(error: RunError) -> StoreError {
    match error {
        RunError::Store(error) => error,
        other => StoreError::Failed(other.to_string()),
    }
}

/// Cancels the runs of a user and waits until they have ended.
#[derive(Debug)]
pub struct UserRuns(pub Arc<dyn RunControl>);

#[async_trait]
impl UserData for UserRuns {
    async fn delete_all(&self, user: &str) -> Result<DeletedData, StoreError> {
        let deadline = Instant::now() + TIMEOUT;
        let mut cancelled: Vec<RunId> = Vec::new();
        loop {
            let unfinished = self.0.unfinished(user).await?;
            if unfinished.is_empty() {
                return Ok(DeletedData {
                    kind: "ended_runs".to_owned(),
                    count: cancelled.len() as u64,
                });
            }
            if Instant::now() >= deadline {
                let text = format!("{} runs of the user do not end", unfinished.len());
                return Err(StoreError::Unavailable(text));
            }
            for run in unfinished {
                if !cancelled.contains(&run) {
                    self.0.cancel(user, &run).await?;
                    cancelled.push(run);
                }
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;

    /// Runs that end some reads after their cancel request; `None` means never.
    #[derive(Debug)]
    struct Runs(Mutex<Vec<(RunId, Option<u32>)>>, Mutex<Vec<RunId>>);

    #[async_trait]
    impl RunControl for Runs {
        async fn unfinished(&self, user: &str) -> Result<Vec<RunId>, StoreError> {
            assert_eq!(user, "ann");
            let mut runs = self.0.lock();
            let cancelled = self.1.lock();
            for (run, reads) in runs.iter_mut() {
                if cancelled.contains(run) {
                    *reads = reads.map(|reads| reads.saturating_sub(1));
                }
            }
            runs.retain(|(_, reads)| *reads != Some(0));
            Ok(runs.iter().map(|(run, _)| run.clone()).collect())
        }

        async fn cancel(&self, _user: &str, run: &RunId) -> Result<(), StoreError> {
            assert!(!self.1.lock().contains(run), "cancelled twice");
            self.1.lock().push(run.clone());
            Ok(())
        }
    }

    fn runs(reads: &[Option<u32>]) -> UserRuns {
        let run = |n| RunId::parse(format!("r{n}")).unwrap();
        let runs = reads.iter().enumerate().map(|(n, reads)| (run(n), *reads));
        UserRuns(Arc::new(Runs(Mutex::new(runs.collect()), Mutex::default())))
    }

    #[tokio::test(start_paused = true)]
    async fn runs_are_cancelled_once_and_awaited() {
        let deleted = runs(&[Some(1), Some(7)]).delete_all("ann").await.unwrap();
        assert_eq!(deleted.count, 2);
        assert_eq!(runs(&[]).delete_all("ann").await.unwrap().count, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn run_that_does_not_end_is_an_error() {
        let refused = runs(&[None]).delete_all("ann").await;
        assert!(matches!(refused, Err(StoreError::Unavailable(_))));
    }
}
