//! Host files that the embedding program passes by path.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::error::ClientError;
use deerflow_core::host_file;

/// Opens a regular file for reading.
pub(super) async fn open(path: PathBuf) -> Result<File, ClientError> {
    let named = path.clone();
    let opened = tokio::task::spawn_blocking(move || open_named(&path)).await;
    opened.unwrap_or_else(|broken| {
        Err(ClientError::Unreadable {
            path: named,
            source: io::Error::other(broken),
        })
    })
}

fn open_named(path: &Path) -> Result<File, ClientError> {
    let unreadable = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            ClientError::NotFound(path.to_owned())
        }
        _ => ClientError::Unreadable {
            path: path.to_owned(),
            source,
        },
    };
    host_file::open_regular(path)
        .map_err(unreadable)?
        .ok_or_else(|| ClientError::NotAFile(path.to_owned()))
}
