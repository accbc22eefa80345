//! State of the last commit that a run has sent to its store.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::Instant;

use crate::definition::StoreError;
use crate::ports::{CommitError, RunCommit, RuntimePorts};
use deerflow_core::fail_points;
use deerflow_core::tasks::{TaskKind, TaskPanicked};

/// Maximum duration of a store outage during which the run continues and its writes are buffered.
const OUTAGE_TIMEOUT: Duration = Duration::from_secs(60);

/// Response of the store. A failed commit is returned with its error.
type StoreReply = Result<(), (CommitError, Arc<RunCommit>)>;

/// Task that sends one commit.
type SendTask = JoinHandle<Result<StoreReply, TaskPanicked>>;

/// Last commit that was sent. The next one is sent only when this one is confirmed, because it may
/// depend on it.
#[derive(Debug, Default)]
pub(super) enum SentCommit {
    /// No commit was sent, or the last one is durable.
    #[default]
    Confirmed,
    /// The store has not responded yet.
    InFlight(InFlight),
    /// The store did not confirm the commit. It may have been written, so it is sent again
    /// unchanged.
    Unconfirmed(Box<Unconfirmed>),
    /// The content of the commit is lost.
    Lost(StoreError),
}

/// Commit to which the store has not responded yet.
#[derive(Debug)]
pub(super) struct InFlight {
    task: SendTask,
    /// Callers that wait for the commit.
    waiters: Vec<oneshot::Sender<()>>,
    /// Time of the first failure of this commit.
    failing_since: Option<Instant>,
}

/// Commit that the store did not confirm.
#[derive(Debug)]
pub(super) struct Unconfirmed {
    pub(super) commit: Arc<RunCommit>,
    waiters: Vec<oneshot::Sender<()>>,
    failing_since: Instant,
}

impl SentCommit {
    /// Sends a commit in a task of its own. `waiters` are notified when it is durable.
    pub(super) fn send(
        commit: Arc<RunCommit>,
        waiters: Vec<oneshot::Sender<()>>,
        ports: &RuntimePorts,
    ) -> Self {
        Self::InFlight(InFlight {
            task: spawn(commit, ports),
            waiters,
            failing_since: None,
        })
    }

    /// Sends an unconfirmed commit again. Other states do not change.
    #[must_use]
    pub(super) fn resent(self, ports: &RuntimePorts) -> Self {
        match self {
            Self::Unconfirmed(unconfirmed) => Self::InFlight(InFlight {
                task: spawn(unconfirmed.commit, ports),
                waiters: unconfirmed.waiters,
                failing_since: Some(unconfirmed.failing_since),
            }),
            other => other,
        }
    }

    /// Reports whether the last commit is not confirmed yet.
    pub(super) fn is_unconfirmed(&self) -> bool {
        matches!(self, Self::InFlight(_) | Self::Unconfirmed(_))
    }

    /// Reports whether the last commit is durable, so that the next one may be sent.
    pub(super) fn is_confirmed(&self) -> bool {
        matches!(self, Self::Confirmed)
    }

    /// Waits for the response to a commit in flight. Cancellation safe: the state changes only when
    /// the response is read. A failure because of an outage is not reported for [`OUTAGE_TIMEOUT`];
    /// the commit is then sent again.
    pub(super) async fn response(&mut self) -> Result<(), CommitError> {
        let Self::InFlight(in_flight) = self else {
            return Ok(());
        };
        let response = (&mut in_flight.task).await;
        let (next, result) = match std::mem::take(self) {
            Self::InFlight(in_flight) => in_flight.answered(response),
            other => (other, Ok(())),
        };
        *self = next;
        result
    }
}

impl InFlight {
    /// Returns the state after the response of the store, and the error that the run must handle.
    fn answered(
        self,
        response: Result<Result<StoreReply, TaskPanicked>, JoinError>,
    ) -> (SentCommit, Result<(), CommitError>) {
        match response {
            Ok(Ok(Ok(()))) => {
                fail_points::pass("step.stored");
                for written in self.waiters {
                    // The receiver may be dropped.
                    let _receiver_dropped = written.send(());
                }
                (SentCommit::Confirmed, Ok(()))
            }
            Ok(Ok(Err((error, commit)))) => {
                let failing_since = self.failing_since.unwrap_or_else(Instant::now);
                let result = match error {
                    CommitError::Store(StoreError::Unavailable(reason))
                        if failing_since.elapsed() < OUTAGE_TIMEOUT =>
                    {
                        tracing::warn!(reason, "cannot store a step of the run yet");
                        Ok(())
                    }
                    error => Err(error),
                };
                let unconfirmed = Unconfirmed {
                    commit,
                    waiters: self.waiters,
                    failing_since,
                };
                (SentCommit::Unconfirmed(Box::new(unconfirmed)), result)
            }
            Ok(Err(panicked)) => {
                let why = StoreError::Failed(panicked.to_string());
                (SentCommit::Lost(why.clone()), Err(why.into()))
            }
            Err(aborted) => {
                let why = StoreError::Unavailable(aborted.to_string());
                (SentCommit::Confirmed, Err(why.into()))
            }
        }
    }
}

fn spawn(commit: Arc<RunCommit>, ports: &RuntimePorts) -> SendTask {
    let store = ports.commit.clone();
    let work = async move {
        store
            .commit(Arc::clone(&commit))
            .await
            .map_err(|error| (error, commit))
    };
    ports.tasks.spawn(TaskKind::Finish, "run commit", work)
}
