//! Identity of a file: a removed or replaced file is detected.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use deerflow_domain::readiness::{NotReady, StoredFile};

/// Device and inode of a file. Two paths with the same id lead to the same file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// Returns the id of the file at `path`.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        std::fs::metadata(path).map(|metadata| Self::from(&metadata))
    }

    /// Returns the id of an open file, even if it was moved or removed.
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        file.metadata().map(|metadata| Self::from(&metadata))
    }

    /// Fails if the file at `path` is missing or has another id.
    pub(crate) fn check(self, file: StoredFile, path: &Path) -> Result<(), NotReady> {
        match Self::at(path) {
            Ok(found) if found == self => Ok(()),
            Ok(_) => Err(NotReady::Replaced(file)),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                Err(NotReady::Removed(file))
            }
            Err(error) => {
                tracing::error!(path = %path.display(), %error, "cannot read the metadata of a file in use");
                Err(NotReady::WriteFailed)
            }
        }
    }
}

impl From<&Metadata> for FileId {
    fn from(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }
}
