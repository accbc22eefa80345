//! Progress of a migration of an existing database.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// File in the data directory that exists while a migration runs. Other programs cannot see the
/// progress in the database, because a migration is one transaction.
const PROGRESS_FILE: &str = "deerflow.db-migration";

/// Progress of a migration. Its text is `22 of 36 steps, next m0022_model_usage`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrationProgress {
    /// Number of completed steps.
    pub done: usize,
    /// Number of all steps that the database lacked.
    pub total: usize,
    /// Name of the step that runs.
    pub step: String,
}

impl fmt::Display for MigrationProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { done, total, step } = self;
        write!(f, "{done} of {total} steps, next {step}")
    }
}

/// Receives the progress before each step.
pub(crate) type OnProgress<'a> = &'a (dyn Fn(&MigrationProgress) + Send + Sync);

/// File with the progress, removed when it is dropped. After the end of a process it may remain, so
/// it counts only while the database is in use.
pub(crate) struct ProgressFile(PathBuf);

impl ProgressFile {
    /// Creates the progress of the database in `directory`, without its file.
    pub(crate) fn new(directory: &Path) -> Self {
        Self(directory.join(PROGRESS_FILE))
    }

    /// Writes the progress. The migration does not depend on it.
    pub(crate) fn write(&self, progress: &MigrationProgress) {
        if let Err(error) = fs::write(&self.0, progress.to_string()) {
            tracing::debug!(%error, "cannot write the progress of the migration");
        }
    }

    /// Returns the text of the progress in `directory`.
    pub(crate) fn read(directory: &Path) -> Option<String> {
        fs::read_to_string(directory.join(PROGRESS_FILE)).ok()
    }
}

impl Drop for ProgressFile {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.0)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::debug!(%error, "cannot remove the progress of the migration");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_readable_until_the_migration_ends() {
        let directory = tempfile::tempdir().unwrap();
        let file = ProgressFile::new(directory.path());
        assert_eq!(ProgressFile::read(directory.path()), None);
        file.write(&MigrationProgress {
            done: 2,
            total: 5,
            step: "m0003_run_batches".to_owned(),
        });
        assert_eq!(
            ProgressFile::read(directory.path()).as_deref(),
            Some("2 of 5 steps, next m0003_run_batches")
        );
        drop(file);
        assert_eq!(ProgressFile::read(directory.path()), None);
    }
}
