//! One writer at a time in a folder, in this process and in others.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Waits for its turn in a folder, which is made when it is missing, and holds it until what is given back is dropped.
pub(crate) fn hold_folder(folder: &Path) -> io::Result<File> {
    fs::create_dir_all(folder)?;
    let folder = File::open(folder)?;
    rustix::io::retry_on_intr(|| rustix::fs::flock(&folder, rustix::fs::FlockOperation::LockExclusive))?;
    Ok(folder)
}
