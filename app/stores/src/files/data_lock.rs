//! Lock of the data directory for one process: a lock file that the operating system releases when
//! the process ends.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use crate::files::file_id::FileId;

/// Name of the lock file in the data directory.
pub(crate) const LOCK_FILE: &str = "deerflow.lock";

/// Number of attempts while other processes only inspect the lock, and the delay between them. An
/// inspection takes microseconds, but the inspecting process may be suspended.
const MAX_ATTEMPTS: u32 = 10;
const RETRY_DELAY: Duration = Duration::from_millis(30);

/// Holds the lock until dropped.
#[derive(Debug)]
pub(crate) struct DataLock {
    file: File,
}

impl DataLock {
    /// Acquires the lock; `None` if another process holds it. Blocks briefly while other processes
    /// inspect it.
    pub(crate) fn acquire(directory: &Path) -> io::Result<Option<Self>> {
        Self::acquire_with_wait(directory, || std::thread::sleep(RETRY_DELAY))
    }

    /// Acquires the lock, and calls `wait` between attempts while other processes inspect it.
    fn acquire_with_wait(directory: &Path, mut wait: impl FnMut()) -> io::Result<Option<Self>> {
        // Some file systems grant a shared lock only on a readable file.
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(directory.join(LOCK_FILE))?;
        for _ in 0..MAX_ATTEMPTS {
            if try_lock(&file, FlockOperation::NonBlockingLockExclusive)? {
                return Ok(Some(Self { file }));
            }
            // The holder's exclusive lock prevents inspections; inspections do not prevent each
            // other.
            if !try_lock(&file, FlockOperation::NonBlockingLockShared)? {
                return Ok(None);
            }
            flock(&file, FlockOperation::Unlock)?;
            wait();
        }
        Ok(None)
    }

    /// Returns the id of the locked file.
    pub(crate) fn id(&self) -> io::Result<FileId> {
        FileId::of(&self.file)
    }

    /// Returns `true` if a process holds the lock. Creates no file, and does not keep the lock.
    pub(crate) fn is_held(directory: &Path) -> io::Result<bool> {
        let file = match File::open(directory.join(LOCK_FILE)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        Ok(!try_lock(&file, FlockOperation::NonBlockingLockShared)?)
    }
}

/// Returns `true` if the lock was acquired.
pub(crate) fn try_lock(file: &File, operation: FlockOperation) -> io::Result<bool> {
    match flock(file, operation) {
        Ok(()) => Ok(true),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inspection_does_not_prevent_acquisition() {
        let directory = tempfile::tempdir().unwrap();
        drop(DataLock::acquire(directory.path()).unwrap().unwrap());
        let reader = File::open(directory.path().join(LOCK_FILE)).unwrap();
        assert!(try_lock(&reader, FlockOperation::NonBlockingLockShared).unwrap());
        let mut readers = vec![reader];
        let mut waits = 0;
        let acquired = DataLock::acquire_with_wait(directory.path(), || {
            waits += 1;
            readers.clear();
        });
        assert!(acquired.unwrap().is_some());
        assert_eq!(waits, 1);
    }

    #[test]
    fn held_lock_fails_acquisition_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let _lock = DataLock::acquire(directory.path()).unwrap().unwrap();
        let other = DataLock::acquire_with_wait(directory.path(), || panic!("no attempt may wait"));
        assert!(other.unwrap().is_none());
        assert!(DataLock::is_held(directory.path()).unwrap());
    }
}
