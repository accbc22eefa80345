//! Files of a thread that a run created, changed and deleted.
//!
//! [`RunSnapshots`] scans the thread's files before the first tool call of a run that may change
//! them: sizes, times, and the content of small text files. A second scan at the end of the run
//! reads only files whose facts differ. A run without such a call costs nothing. All work is
//! bounded by [`ChangeLimits`]. Links are reported, never followed.

mod content;
mod diff;
mod facts;
mod location;
mod report;
mod run_snapshots;
mod snapshot;

pub use report::ChangeReport;
pub use run_snapshots::RunSnapshots;

use serde::Serialize;

/// Limits of a comparison, as clients see them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ChangeLimits {
    /// Maximum number of reported files.
    pub max_files: usize,
    /// Maximum number of files and links that a scan visits.
    pub max_scanned_files: usize,
    /// Maximum size of a file with a diff, in bytes.
    pub max_file_bytes_for_diff: u64,
    /// Maximum total size of all diffs, in bytes.
    pub max_total_diff_bytes: usize,
}

impl Default for ChangeLimits {
    fn default() -> Self {
        Self {
            max_files: 200,
            max_scanned_files: 2_000,
            max_file_bytes_for_diff: 262_144,
            max_total_diff_bytes: 1_048_576,
        }
    }
}

#[cfg(test)]
#[path = "changes_tests.rs"]
mod tests;
