//! Exclusive lock on a folder, within this process and between processes.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Waits for the lock on a folder, which is created if it is missing. Dropping the returned file
/// releases the lock.
pub fn lock_folder(folder: &Path) -> io::Result<File> {
    fs::create_dir_all(folder)?;
    let folder = system::open(folder)?;
    system::lock(&folder)?;
    Ok(folder)
}

/// Locks an existing folder; `None` if it is already locked. Dropping the returned file releases
/// the lock.
#[cfg(feature = "http")]
pub fn try_lock_folder(folder: &Path) -> io::Result<Option<File>> {
    let folder = system::open(folder)?;
    Ok(system::try_lock(&folder)?.then_some(folder))
}

#[cfg(unix)]
mod system {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    use rustix::fs::{FlockOperation, flock};
    use rustix::io::retry_on_intr;

    pub(super) fn open(folder: &Path) -> io::Result<File> {
        File::open(folder)
    }

    pub(super) fn lock(folder: &File) -> io::Result<()> {
        Ok(retry_on_intr(|| {
            flock(folder, FlockOperation::LockExclusive)
        })?)
    }

    #[cfg(feature = "http")]
    pub(super) fn try_lock(folder: &File) -> io::Result<bool> {
        match retry_on_intr(|| flock(folder, FlockOperation::NonBlockingLockExclusive)) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(not(unix))]
mod system {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    /// Opens the file that represents the folder: only files can be locked here.
    pub(super) fn open(folder: &Path) -> io::Result<File> {
        let mut options = File::options();
        options.write(true).create(true).truncate(false);
        options.open(folder.join(".lock"))
    }

    pub(super) fn lock(file: &File) -> io::Result<()> {
        file.lock()
    }

    #[cfg(feature = "http")]
    pub(super) fn try_lock(file: &File) -> io::Result<bool> {
        match file.try_lock() {
            Ok(()) => Ok(true),
            Err(std::fs::TryLockError::WouldBlock) => Ok(false),
            Err(std::fs::TryLockError::Error(error)) => Err(error),
        }
    }
}
