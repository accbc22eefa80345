//! Progress of a migration of an existing database.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rustix::fs::{FlockOperation, flock};

use crate::files::data_lock::try_lock;

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
    /// Name of the next step.
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

/// File with the progress, removed when it is dropped. Its writer holds a lock of it: a file without
/// one remained after the end of a process.
pub(crate) struct ProgressFile {
    path: PathBuf,
    /// `None` before the first step.
    file: Mutex<Option<File>>,
}

impl ProgressFile {
    /// Creates the progress of the database in `directory`, without its file.
    pub(crate) fn new(directory: &Path) -> Self {
        Self {
            path: directory.join(PROGRESS_FILE),
            file: Mutex::default(),
        }
    }

    /// Writes the progress. The migration does not depend on it.
    pub(crate) fn write(&self, progress: &MigrationProgress) {
        if let Err(error) = self.try_write(progress) {
            tracing::debug!(%error, "cannot write the progress of the migration");
        }
    }

    fn try_write(&self, progress: &MigrationProgress) -> io::Result<()> {
        let mut file = self.file.lock();
        let file = match &mut *file {
            Some(file) => file,
            none => none.insert(create_locked(&self.path)?),
        };
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(progress.to_string().as_bytes())
    }

    /// Returns the text of the progress of a migration that runs in `directory`.
    pub(crate) fn read(directory: &Path) -> Option<String> {
        let mut file = File::open(directory.join(PROGRESS_FILE)).ok()?;
        if try_lock(&file, FlockOperation::NonBlockingLockShared).ok()? {
            return None;
        }
        let mut text = String::new();
        file.read_to_string(&mut text).ok()?;
        (!text.is_empty()).then_some(text)
    }
}

fn create_locked(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)?;
    // A reader holds it for microseconds.
    flock(&file, FlockOperation::LockExclusive)?;
    Ok(file)
}

impl Drop for ProgressFile {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path)
            && error.kind() != io::ErrorKind::NotFound
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
        fs::write(directory.path().join(PROGRESS_FILE), "of a killed process").unwrap();
        assert_eq!(ProgressFile::read(directory.path()), None);
    }
}
