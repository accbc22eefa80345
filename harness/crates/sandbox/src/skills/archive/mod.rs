//! A `.skill` file: an untrusted ZIP archive with one skill.
//!
//! `plan` decides from the central directory alone whether the archive is accepted, and which files
//! are unpacked. Contents are read only after that, and written to a new folder only; no entry can
//! name a path outside of it.

mod error;
mod limits;
mod plan;
mod unpack;

use std::fs::File;

pub use error::{ArchiveError, EntryProblem};
pub use limits::{
    MAX_ARCHIVE_BYTES, MAX_DIRECTORY_BYTES, MAX_ENTRIES, MAX_MEMBER_BYTES, MAX_UNPACKED_BYTES,
};
pub(crate) use unpack::MAX_SKILL_FILE_BYTES;
pub use unpack::SkillArchive;

/// Returns the bytes of one file of an archive, which is validated as for an installation: the file
/// with this name, or else the first one with a name that ends in `/{name}`. `None` if there is no
/// such file. Blocks for a time that depends on the archive.
///
/// # Errors
/// The reason why the archive or the file is rejected.
pub fn member(archive: File, name: &str) -> Result<Option<Vec<u8>>, ArchiveError> {
    unpack::member(archive, name)
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
