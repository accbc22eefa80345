//! Why an artifact cannot be had.

use super::path::shown;
use crate::sandbox::virtual_paths::USER_DATA;
use crate::sandbox::{FileError, PathError, VirtualPath};
use crate::skills::archive::ArchiveError;

/// Why an artifact cannot be had. The texts are for whoever asked, and name no folder of the host.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArtifactError {
    /// The path is somewhere else.
    #[error("path must start with {USER_DATA}")]
    OutsideUserData,
    /// The path, or a link on its way, leads out of its root.
    #[error("access denied: path traversal detected")]
    Traversal,
    /// The path is malformed.
    #[error(transparent)]
    Path(PathError),
    /// There is nothing at the path.
    #[error("artifact not found: {0}")]
    NotFound(String),
    /// A directory is there, or a pipe.
    #[error("path is not a file: {0}")]
    NotAFile(String),
    /// The archive has no such file.
    #[error("file '{0}' not found in skill archive")]
    NotInArchive(String),
    /// The archive is refused.
    #[error(transparent)]
    Archive(ArchiveError),
    /// It is too long to be handed out in one piece.
    #[error("the artifact is longer than {0} bytes")]
    TooLarge(u64),
    /// The disk.
    #[error(transparent)]
    File(#[from] FileError),
}

impl ArtifactError {
    /// No such file.
    pub fn not_found(path: &VirtualPath) -> Self {
        Self::NotFound(shown(path))
    }
}
