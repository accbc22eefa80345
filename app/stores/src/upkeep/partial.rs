//! The incomplete files of one backup, which one process writes at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::checksum;
use super::copies::MODE;
use crate::files::companions::{remove_if_present, remove_with_companions, with_suffix};
use crate::files::file_id::FileId;

/// Suffix of a backup that is being written.
const PARTIAL: &str = ".partial";
/// Suffix of the file whose lock the writing process holds. The backup itself is not locked: on
/// some file systems that lock would conflict with those of SQLite.
const LOCK: &str = ".partial-lock";

/// The right to write a backup of one name. Incomplete files are removed when it is dropped.
#[derive(Debug)]
pub(super) struct PartialBackup {
    path: PathBuf,
    checksum: PathBuf,
    lock: PathBuf,
    /// Holds the lock until dropped.
    _held: File,
}

impl PartialBackup {
    /// Acquires the right and removes what a killed process left; `None` if another process has it.
    pub(super) fn acquire(target: &Path) -> io::Result<Option<Self>> {
        let lock = with_suffix(target, LOCK);
        loop {
            let held = OpenOptions::new()
                .create(true)
                .truncate(false)
                .read(true)
                .write(true)
                .mode(MODE)
                .open(&lock)?;
            match held.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            // The former holder may have removed the file between the two calls above.
            if FileId::at(&lock).ok() != Some(FileId::of(&held)?) {
                continue;
            }
            let path = with_suffix(target, PARTIAL);
            let partial = Self {
                checksum: with_suffix(&path, checksum::SUFFIX),
                path,
                lock,
                _held: held,
            };
            partial.remove_incomplete()?;
            return Ok(Some(partial));
        }
    }

    /// Returns the path of the incomplete backup.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of its checksum.
    pub(super) fn checksum(&self) -> &Path {
        &self.checksum
    }

    fn remove_incomplete(&self) -> io::Result<()> {
        remove_with_companions(&self.path)?;
        remove_if_present(&self.checksum)?;
        Ok(())
    }
}

impl Drop for PartialBackup {
    fn drop(&mut self) {
        // The lock file is removed while it is locked, so that no other process holds it.
        let removed = self
            .remove_incomplete()
            .and_then(|()| remove_if_present(&self.lock));
        if let Err(error) = removed {
            tracing::warn!(%error, file = %self.path.display(), "cannot remove an incomplete backup");
        }
    }
}
