//! Trial file: checks that a folder can be written.

use std::io::{self, Write};
use std::path::Path;

use deerflow_domain::readiness::{NotReady, StoredFile};

/// Size of a trial file: more than a file system stores inline with the file's name.
const TRIAL_BYTES: usize = 4096;

/// Writes an unnamed file to a folder, which is removed at once.
pub(crate) fn write_trial(folder: &Path) -> io::Result<()> {
    let mut file = tempfile::tempfile_in(folder)?;
    file.write_all(&[0x5a; TRIAL_BYTES])?;
    file.sync_all()
}

/// Returns why a trial file could not be written.
pub(crate) fn reason(kind: StoredFile, folder: &Path, error: &io::Error) -> NotReady {
    tracing::warn!(folder = %folder.display(), %error, "cannot write a trial file to a folder");
    match error.kind() {
        _ if is_full(error) => NotReady::DiskFull,
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => NotReady::Removed(kind),
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
            NotReady::FolderNotWritable(kind)
        }
        _ => NotReady::WriteFailed,
    }
}

/// Returns `true` for errors of a full disk or an exhausted quota.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}
