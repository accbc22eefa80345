//! Errors of the worker of a document.

use super::confine::ConfinementError;
use super::reader::MAX_MARKDOWN_BYTES;

/// Maximum size of a document, in bytes.
pub(super) const MAX_DOCUMENT_BYTES: u64 = 256 << 20;

/// Error of a worker.
#[derive(Debug, thiserror::Error)]
pub enum WorkError {
    /// The document could not be read, or the Markdown could not be written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The process could not drop its rights, so the document was not parsed.
    #[error(transparent)]
    Unconfined(#[from] ConfinementError),
    /// The document is too large.
    #[error("it has more than {} MiB", MAX_DOCUMENT_BYTES >> 20)]
    TooLarge,
    /// The Markdown is too long.
    #[error("its text has more than {} MiB", MAX_MARKDOWN_BYTES >> 20)]
    TooLong,
    /// The document is broken, encrypted or of another kind.
    #[error("{0}")]
    Broken(String),
}
