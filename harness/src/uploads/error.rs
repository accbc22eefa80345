//! Why an upload is refused.

use crate::sandbox::FileError;

/// Why files were not taken in, or not removed. The texts are for whoever asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UploadError {
    /// There is nothing to take in.
    #[error("no files provided")]
    Nothing,
    /// More files than one upload may have.
    #[error("too many files: maximum is {0}")]
    TooMany(u32),
    /// A file is longer than a file may be.
    #[error("file too large: {0}")]
    FileTooLarge(String),
    /// Together they are longer than an upload may be.
    #[error("total upload size too large")]
    TooMuch,
    /// No upload has such a name.
    #[error("invalid filename")]
    InvalidName,
    /// No upload has this name.
    #[error("file not found: {0}")]
    NotFound(String),
    /// Something else has this name.
    #[error("not a file: {0}")]
    NotAFile(String),
    /// The disk.
    #[error(transparent)]
    File(#[from] FileError),
}
