//! Files of the host that the embedding program names.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::error::ClientError;

/// Opens a regular file to be read. Waits for nobody at the other end of a pipe.
pub(super) async fn open(path: PathBuf) -> Result<File, ClientError> {
    let named = path.clone();
    let opened = tokio::task::spawn_blocking(move || open_regular(&path)).await;
    opened.unwrap_or_else(|broken| Err(ClientError::Unreadable { path: named, source: io::Error::other(broken) }))
}

fn open_regular(path: &Path) -> Result<File, ClientError> {
    let unreadable = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => ClientError::NotFound(path.to_owned()),
        _ => ClientError::Unreadable { path: path.to_owned(), source },
    };
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(unreadable)?;
    let is_file = file.metadata().map_err(unreadable)?.is_file();
    if is_file { Ok(file) } else { Err(ClientError::NotAFile(path.to_owned())) }
}
