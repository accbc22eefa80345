//! A `.skill` file: a ZIP archive with one skill in it, from somebody who may mean harm.
//!
//! `plan` decides from the table of contents alone whether the archive is taken, and what of it. Only then something is read, and
//! nothing is written to but a fresh folder, in which no entry can name what is outside of it.

mod plan;
mod unpack;

use std::fs::File;

use crate::sandbox::Fault;
use crate::skills::frontmatter::FrontmatterError;

pub use plan::EntryProblem;
pub(crate) use unpack::LONGEST_SKILL_FILE;
pub use unpack::SkillArchive;

/// The most entries of an archive.
pub const MOST_ENTRIES: usize = 4_096;
/// The largest file of an archive that is shown by itself, in bytes.
pub const LARGEST_SHOWN: u64 = 16 << 20;
/// The longest table of contents, in bytes: it is read whole before anything is decided.
pub const LONGEST_CONTENTS: u64 = 4 << 20;
/// The largest archive and the most that may come out of one, in bytes.
pub const LARGEST_ARCHIVE: u64 = 256 << 20;
/// See [`LARGEST_ARCHIVE`].
pub const MOST_BYTES: u64 = 512 << 20;

/// Why an archive is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// It is no ZIP archive, or one that contradicts itself.
    #[error("it cannot be read as a ZIP archive: {0}")]
    Unreadable(String),
    /// The file itself is too large.
    #[error("it is larger than {LARGEST_ARCHIVE} bytes")]
    TooLarge,
    /// It has too many entries.
    #[error("it has {entries} entries, the limit is {MOST_ENTRIES}")]
    TooMany {
        /// How many it says it has.
        entries: usize,
    },
    /// It says too much of its entries.
    #[error("its table of contents is longer than {LONGEST_CONTENTS} bytes")]
    Wordy,
    /// Too much would come out of it.
    #[error("what is in it is larger than {MOST_BYTES} bytes, or far larger than the archive")]
    Bomb,
    /// Something is wrong with an entry.
    #[error("the entry {name:?} {problem}")]
    Entry {
        /// Which; cut when it is long.
        name: String,
        /// What.
        problem: EntryProblem,
    },
    /// No skill is in it.
    #[error("there is no SKILL.md at its top, or in its only folder")]
    NoSkill,
    /// The skill's file is not right.
    #[error("its SKILL.md is invalid: {0}")]
    Frontmatter(#[from] FrontmatterError),
    /// It cannot be written down.
    #[error("it cannot be unpacked: {0}")]
    Disk(#[from] Fault),
}

/// The bytes of one file of an archive, which is judged as if it were installed: the file of this name, or the first whose name ends
/// in `/{name}`. `None` when there is no such file. Blocks, and takes as long as the archive has it take.
///
/// # Errors
/// Why the archive, or the file, is refused.
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

#[cfg(test)]
#[path = "archive_tests.rs"]
mod tests;
