//! Errors of uploads.

use crate::sandbox::FileError;

/// Reason why files were not stored or removed. The texts are meant for the client.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UploadError {
    /// The request has no files.
    #[error("no files provided")]
    Nothing,
    /// The request has too many files.
    #[error("too many files: maximum is {0}")]
    TooMany(u32),
    /// A file is too large.
    #[error("file too large: {0}")]
    FileTooLarge(String),
    /// The files together are too large.
    #[error("total upload size too large")]
    TooMuch,
    /// The name is invalid.
    #[error("invalid filename")]
    InvalidName,
    /// No upload has this name.
    #[error("file not found: {0}")]
    NotFound(String),
    /// The path is not a regular file.
    #[error("not a file: {0}")]
    NotAFile(String),
    /// Disk error.
    #[error(transparent)]
    File(#[from] FileError),
}
