//! The data directory belongs to one process: a lock file that the operating system frees when the process ends, however it ends.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use crate::files::FileId;

/// The name of the lock file in the data directory.
pub(crate) const LOCK_FILE: &str = "deerflow.lock";

/// How often the lock is tried for while others only look, and how long they get for a look. One takes microseconds, but who looks may
/// be held up.
const TRIES: u32 = 10;
const LOOK: Duration = Duration::from_millis(30);

/// Holds the directory until it is dropped.
#[derive(Debug)]
pub(crate) struct DataLock {
    file: File,
}

impl DataLock {
    /// Takes the lock; `None` when another process has it. Blocks for a moment when others look.
    pub(crate) fn take(directory: &Path) -> io::Result<Option<Self>> {
        Self::take_after(directory, || std::thread::sleep(LOOK))
    }

    /// Takes it as soon as nobody looks, and calls `wait` between the tries.
    fn take_after(directory: &Path, mut wait: impl FnMut()) -> io::Result<Option<Self>> {
        // Some file systems lock for a look only what can be read.
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(directory.join(LOCK_FILE))?;
        for _ in 0..TRIES {
            if try_lock(&file, FlockOperation::NonBlockingLockExclusive)? {
                return Ok(Some(Self { file }));
            }
            // Whoever has the directory lets nobody look; those who look let each other.
            if !try_lock(&file, FlockOperation::NonBlockingLockShared)? {
                return Ok(None);
            }
            flock(&file, FlockOperation::Unlock)?;
            wait();
        }
        Ok(None)
    }

    /// The id of the locked file.
    pub(crate) fn id(&self) -> io::Result<FileId> {
        FileId::of(&self.file)
    }

    /// Whether a process has it. Makes no file, and holds nothing that outlives the question.
    pub(crate) fn is_taken(directory: &Path) -> io::Result<bool> {
        let file = match File::open(directory.join(LOCK_FILE)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        Ok(!try_lock(&file, FlockOperation::NonBlockingLockShared)?)
    }
}

/// Whether the lock was to be had.
fn try_lock(file: &File, operation: FlockOperation) -> io::Result<bool> {
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
    fn who_looks_keeps_nobody_from_taking_it() {
        let directory = tempfile::tempdir().unwrap();
        drop(DataLock::take(directory.path()).unwrap().unwrap());
        let look = File::open(directory.path().join(LOCK_FILE)).unwrap();
        assert!(try_lock(&look, FlockOperation::NonBlockingLockShared).unwrap());
        let mut looks = vec![look];
        let mut waits = 0;
        let taken = DataLock::take_after(directory.path(), || {
            waits += 1;
            looks.clear();
        });
        assert!(taken.unwrap().is_some());
        assert_eq!(waits, 1);
    }

    #[test]
    fn who_has_it_keeps_others_out_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let _lock = DataLock::take(directory.path()).unwrap().unwrap();
        let other =
            DataLock::take_after(directory.path(), || panic!("there is nothing to wait for"));
        assert!(other.unwrap().is_none());
        assert!(DataLock::is_taken(directory.path()).unwrap());
    }
}
