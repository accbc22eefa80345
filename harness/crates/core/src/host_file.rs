//! Safe opening of host files whose paths come from users.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Opens a file for reading without blocking on a pipe; `None` for anything but a regular file.
///
/// # Errors
/// Any error of opening the file.
pub fn open_regular(path: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    let file = options.open(path)?;
    Ok(file.metadata()?.is_file().then_some(file))
}
