//! Errors of artifact requests.

use super::url::url_path;
use crate::sandbox::virtual_paths::USER_DATA;
use crate::sandbox::{FileError, PathError, VirtualPath};
use crate::skills::archive::ArchiveError;

/// Reason why an artifact is not available. The texts are meant for the client and contain no host
/// path.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArtifactError {
    /// The path is outside of the user data.
    #[error("path must start with {USER_DATA}")]
    OutsideUserData,
    /// The path, or a link in it, leads out of its root.
    #[error("access denied: path traversal detected")]
    Traversal,
    /// The path is malformed.
    #[error(transparent)]
    Path(PathError),
    /// The path does not exist.
    #[error("artifact not found: {0}")]
    NotFound(String),
    /// The path is a directory or a special file.
    #[error("path is not a file: {0}")]
    NotAFile(String),
    /// The archive does not contain this file.
    #[error("file '{0}' not found in skill archive")]
    NotInArchive(String),
    /// The archive is rejected.
    #[error(transparent)]
    Archive(ArchiveError),
    /// The artifact is too large to be returned as a whole.
    #[error("the artifact is longer than {0} bytes")]
    TooLarge(u64),
    /// Disk error.
    #[error(transparent)]
    File(#[from] FileError),
}

impl ArtifactError {
    /// Returns the error for a missing artifact.
    pub fn not_found(path: &VirtualPath) -> Self {
        Self::NotFound(url_path(path))
    }
}
