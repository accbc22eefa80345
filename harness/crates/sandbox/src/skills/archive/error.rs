//! Reasons why an archive or one of its entries is rejected.

use super::limits::{
    MAX_ARCHIVE_BYTES, MAX_DIRECTORY_BYTES, MAX_ENTRIES, MAX_MEMBER_BYTES, MAX_UNPACKED_BYTES,
};
use crate::sandbox::FileFailure;
use crate::skills::frontmatter::FrontmatterError;

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
    /// The files that are read from it are too large together.
    #[error("its files have more than {max_bytes} bytes together")]
    LargeFiles {
        /// Limit.
        max_bytes: u64,
    },
    /// An entry is invalid.
    #[error("the entry {name:?} {problem}")]
    Entry {
        /// Name of the entry, truncated.
        name: String,
        /// Description of the problem.
        problem: EntryProblem,
    },
    /// It contains no skill.
    #[error("there is no SKILL.md at its root or in its only folder")]
    NoSkill,
    /// The skill's file is invalid.
    #[error("its SKILL.md is invalid: {0}")]
    Frontmatter(#[from] FrontmatterError),
    /// It cannot be written to the disk.
    #[error("it cannot be unpacked: {0}")]
    Disk(#[from] FileFailure),
}

impl ArchiveError {
    pub(super) fn entry(name: &str, problem: EntryProblem) -> Self {
        Self::Entry {
            name: name.chars().take(120).collect(),
            problem,
        }
    }
}

/// Problem of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EntryProblem {
    /// Absolute path, such as `/etc/passwd`.
    #[error("has an absolute path")]
    Absolute,
    /// Path with dot segments, such as `../x`.
    #[error("has an empty, \".\" or \"..\" segment in its path")]
    Climbs,
    /// Name with a backslash, a colon, a control character, or an invisible character.
    #[error(
        "has an invalid character in its name, or a name that begins with a space or ends with a space or dot"
    )]
    OddName,
    /// Name that is too long or has too many folders.
    #[error("has a path that is too long or too deep")]
    LongName,
    /// Name of another entry, possibly with different case or Unicode form.
    #[error("has the name of another entry, or differs from it only in case or Unicode form")]
    Twice,
    /// File that is also a folder of another entry.
    #[error("is both a file and a folder")]
    FileAndFolder,
    /// Encrypted entry.
    #[error("is encrypted")]
    Encrypted,
    /// Unsupported compression method.
    #[error("is compressed by a method other than deflate")]
    Method,
    /// Device, FIFO or socket.
    #[error("is neither a file nor a folder")]
    NotAFile,
    /// Suspicious compression ratio.
    #[error("has a suspicious compression ratio")]
    Bomb,
    /// Too large for display.
    #[error("is larger than {MAX_MEMBER_BYTES} bytes and cannot be displayed")]
    Large,
    /// Size differs from the stated size.
    #[error("differs from the size stated in the archive")]
    Lies,
    /// Checksum mismatch.
    #[error("is damaged")]
    Damaged,
    /// Nested archive.
    #[error("is a nested archive")]
    Archive,
    /// Compiled program.
    #[error("is a compiled program")]
    Program,
    /// Text that is not UTF-8.
    #[error("is not UTF-8 text")]
    NotText,
    /// Second `SKILL.md`.
    #[error("is a second SKILL.md")]
    NestedSkill,
}
