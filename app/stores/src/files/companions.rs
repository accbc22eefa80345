//! Files next to a SQLite file: their names, their removal, and durable entries of the folder.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Suffix of the write-ahead log.
pub(crate) const LOG: &str = "-wal";
/// Suffix of the rollback journal.
pub(crate) const JOURNAL: &str = "-journal";
/// Suffix of the index of the write-ahead log. SQLite creates it again if it is missing.
pub(crate) const INDEX: &str = "-shm";

/// Returns the path with `suffix` appended to the file name.
pub(crate) fn with_suffix(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Removes a file that may not exist. Returns `true` if it existed.
pub(crate) fn remove_if_present(file: &Path) -> io::Result<bool> {
    match std::fs::remove_file(file) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes a SQLite file that no process uses, and the files next to it. Returns `true` if one of
/// them existed.
pub(crate) fn remove_with_companions(file: &Path) -> io::Result<bool> {
    let mut existed = false;
    for suffix in [LOG, JOURNAL, INDEX, ""] {
        existed |= remove_if_present(&with_suffix(file, suffix))?;
    }
    Ok(existed)
}

/// Makes the names in the folder of `file` durable.
pub(crate) fn sync_folder(file: &Path) -> io::Result<()> {
    File::open(folder_of(file))?.sync_all()
}

/// Returns the folder of `file`.
pub(crate) fn folder_of(file: &Path) -> &Path {
    file.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}
