//! Files of the host that somebody names.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a file to be read, and waits for nobody at the other end of a pipe; `None` for what is no regular file.
///
/// # Errors
/// As opening a file.
pub(crate) fn open_regular(path: &Path) -> io::Result<Option<File>> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    Ok(file.metadata()?.is_file().then_some(file))
}
