//! Retries of failed commits.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::definition::StoreError;
use crate::ports::{CommitError, RunCommit, RuntimePorts};
use crate::termination::END_RETRY_INTERVAL;

/// Time for which the end of a run is retried while the store reports errors.
const END_TIMEOUT: Duration = Duration::from_secs(60);

/// Pause between retries.
pub(super) const RETRY: Duration = Duration::from_millis(500);

/// Reason why the end of a run was not stored.
#[derive(Debug)]
pub(super) enum CommitFailure {
    /// The store responds, but rejects the steps: the run ends as failed, without them.
    Steps(StoreError),
    /// This process may not end the run, or it shuts down.
    Refused(CommitError),
}

/// Sends a commit, and retries until `deadline` while the store fails.
pub(super) async fn commit_before(
    mut commit: Arc<RunCommit>,
    deadline: Instant,
    ports: &RuntimePorts,
) -> Result<(), CommitError> {
    loop {
        Arc::make_mut(&mut commit).at = ports.clock.now();
        match ports.commit.commit(Arc::clone(&commit)).await {
            Err(CommitError::Store(error)) if Instant::now() < deadline => {
                tracing::warn!(%error, "cannot store the run yet");
                tokio::time::sleep(RETRY).await;
            }
            ended => return ended,
        }
    }
}

/// Sends a commit, and retries: until shutdown while the store is unavailable, and for
/// [`END_TIMEOUT`] while it reports errors.
pub(super) async fn commit_end(
    commit: &mut Arc<RunCommit>,
    ports: &RuntimePorts,
) -> Result<(), CommitFailure> {
    let (stop, began) = (ports.tasks.token(), Instant::now());
    let mut failing_since = None;
    loop {
        Arc::make_mut(commit).at = ports.clock.now();
        let error = match ports.commit.commit(Arc::clone(commit)).await {
            Ok(()) => return Ok(()),
            Err(CommitError::Store(error)) => error,
            Err(refused) => return Err(CommitFailure::Refused(refused)),
        };
        tracing::warn!(%error, "cannot store the run yet");
        match &error {
            StoreError::Unavailable(_) => failing_since = None,
            _ if failing_since.get_or_insert_with(Instant::now).elapsed() < END_TIMEOUT => {}
            _ => return Err(CommitFailure::Steps(error)),
        }
        if began.elapsed() < END_TIMEOUT {
            tokio::time::sleep(RETRY).await;
        } else if stop
            .run_until_cancelled(tokio::time::sleep(END_RETRY_INTERVAL))
            .await
            .is_none()
        {
            return Err(CommitFailure::Refused(error.into()));
        }
    }
}
