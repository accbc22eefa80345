//! One writer at a time in a folder, in this process and in others.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Waits for its turn in a folder, which is made when it is missing, and holds it until what is given back is dropped.
pub(crate) fn hold_folder(folder: &Path) -> io::Result<File> {
    fs::create_dir_all(folder)?;
    let folder = File::open(folder)?;
    rustix::io::retry_on_intr(|| {
        rustix::fs::flock(&folder, rustix::fs::FlockOperation::LockExclusive)
    })?;
    Ok(folder)
}

/// Holds a folder that is there until what is given back is dropped; nothing where somebody else holds it.
#[cfg(feature = "http")]
pub(crate) fn try_hold_folder(folder: &Path) -> io::Result<Option<File>> {
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
