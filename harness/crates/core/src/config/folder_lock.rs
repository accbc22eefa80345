//! Exclusive lock on a folder, within this process and between processes.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Waits for the lock on a folder, which is created if it is missing. Dropping the returned file
/// releases the lock.
pub fn lock_folder(folder: &Path) -> io::Result<File> {
    fs::create_dir_all(folder)?;
    let folder = File::open(folder)?;
    rustix::io::retry_on_intr(|| {
        rustix::fs::flock(&folder, rustix::fs::FlockOperation::LockExclusive)
    })?;
    Ok(folder)
}

/// Locks an existing folder; `None` if it is already locked. Dropping the returned file releases
/// the lock.
#[cfg(feature = "http")]
pub fn try_lock_folder(folder: &Path) -> io::Result<Option<File>> {
    let folder = File::open(folder)?;
    match rustix::io::retry_on_intr(|| {
        rustix::fs::flock(
            &folder,
            rustix::fs::FlockOperation::NonBlockingLockExclusive,
        )
    }) {
        Ok(()) => Ok(Some(folder)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
