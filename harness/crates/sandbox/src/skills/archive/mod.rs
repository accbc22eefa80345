//! A `.skill` file: an untrusted ZIP archive with one skill.
//!
//! `plan` decides from the central directory alone whether the archive is accepted, and which files
//! are unpacked. Contents are read only after that, and written to a new folder only; no entry can
//! name a path outside of it.

mod plan;
mod unpack;

use std::fs::File;

use crate::sandbox::FileFailure;
use crate::skills::frontmatter::FrontmatterError;

pub use plan::EntryProblem;
pub(crate) use unpack::MAX_SKILL_FILE_BYTES;
pub use unpack::SkillArchive;

/// Maximum number of entries of an archive.
pub const MAX_ENTRIES: usize = 4_096;
/// Maximum size of a single file that is read from an archive for display, in bytes.
pub const MAX_MEMBER_BYTES: u64 = 16 << 20;
/// Maximum size of the central directory, in bytes: it is read completely before any decision.
pub const MAX_DIRECTORY_BYTES: u64 = 4 << 20;
/// Maximum size of an archive, in bytes.
pub const MAX_ARCHIVE_BYTES: u64 = 256 << 20;
/// Maximum unpacked size of an archive, in bytes.
pub const MAX_UNPACKED_BYTES: u64 = 512 << 20;

/// Reason why an archive is rejected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// It is not a ZIP archive, or it is inconsistent.
    #[error("it is not a readable ZIP archive: {0}")]
    Unreadable(String),
    /// The file is too large.
    #[error("it is larger than {MAX_ARCHIVE_BYTES} bytes")]
    TooLarge,
    /// It has too many entries.
    #[error("it has {entries} entries, the limit is {MAX_ENTRIES}")]
    TooMany {
        /// Stated number of entries.
        entries: usize,
    },
    /// Its central directory is too large.
    #[error("its table of contents is longer than {MAX_DIRECTORY_BYTES} bytes")]
    Wordy,
    /// Its unpacked size is too large.
    #[error(
        "its unpacked size is larger than {MAX_UNPACKED_BYTES} bytes, or far larger than the archive"
    )]
    Bomb,
    /// An entry is invalid.
    #[error("the entry {name:?} {problem}")]
    Entry {
        /// Name of the entry, truncated.
        name: String,
        /// Description of the problem.
        problem: EntryProblem,
    },
    /// It contains no skill.
    #[error("there is no SKILL.md at its top or in its only folder")]
    NoSkill,
    /// The skill's file is invalid.
    #[error("its SKILL.md is invalid: {0}")]
    Frontmatter(#[from] FrontmatterError),
    /// It cannot be written to the disk.
    #[error("it cannot be unpacked: {0}")]
    Disk(#[from] FileFailure),
}

/// Returns the bytes of one file of an archive, which is validated as for an installation: the file
/// with this name, or else the first one with a name that ends in `/{name}`. `None` if there is no
/// such file. Blocks for a time that depends on the archive.
///
/// # Errors
/// The reason why the archive or the file is rejected.
pub fn member(archive: File, name: &str) -> Result<Option<Vec<u8>>, ArchiveError> {
    unpack::member(archive, name)
}

impl ArchiveError {
    fn entry(name: &str, problem: EntryProblem) -> Self {
        Self::Entry {
            name: name.chars().take(120).collect(),
            problem,
        }
    }
}

// Former names, for crates that were written against them.
#[doc(hidden)]
pub use crate::skills::archive::MAX_ARCHIVE_BYTES as LARGEST_ARCHIVE;
#[doc(hidden)]
pub use crate::skills::archive::MAX_DIRECTORY_BYTES as LONGEST_CONTENTS;
#[doc(hidden)]
pub use crate::skills::archive::MAX_ENTRIES as MOST_ENTRIES;
#[doc(hidden)]
pub use crate::skills::archive::MAX_MEMBER_BYTES as LARGEST_SHOWN;
#[doc(hidden)]
pub use crate::skills::archive::MAX_UNPACKED_BYTES as MOST_BYTES;

#[cfg(test)]
#[path = "archive_tests.rs"]
mod tests;
