//! Outcome of a commit: its effect on the thread, or the reason why it was not applied.

use deerflow_runtime::runs::store::CommitError;

use crate::db::error::{DbFailure, FromDbFailure};

/// Effect of a commit on the run's thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThreadOutcome {
    /// The thread still exists.
    Retained,
    /// The run ended, and its temporary thread was deleted with it.
    Deleted,
}

/// Reason why a commit was not applied; its transaction is rolled back.
pub(super) enum CommitRefusal {
    /// It was committed before.
    Repeated(ThreadOutcome),
    /// It may not be committed.
    Refused(CommitError),
}

impl FromDbFailure for CommitRefusal {
    fn from_db_failure(failure: DbFailure) -> Self {
        Self::Refused(CommitError::from_db_failure(failure))
    }
}
