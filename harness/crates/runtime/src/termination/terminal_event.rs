//! Maps the stored end of a run to the terminal event of its stream.

use crate::definition::{RunRecord, RunStatus};
use crate::stream_bridge::TerminalKind;

/// Returns the terminal event for a stored status, or `None` if the run is not terminal.
pub(crate) fn terminal_of(record: &RunRecord) -> Option<TerminalKind> {
    match record.status {
        RunStatus::Success => Some(TerminalKind::End),
        RunStatus::Interrupted => Some(TerminalKind::Cancel),
        // A rollback was requested, so it is not a failure.
        RunStatus::Error if record.is_rolled_back() => Some(TerminalKind::Cancel),
        RunStatus::Error | RunStatus::Timeout => Some(TerminalKind::Error),
        RunStatus::Pending | RunStatus::Starting | RunStatus::Running => None,
    }
}
