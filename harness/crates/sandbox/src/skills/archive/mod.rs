//! A `.skill` file: an untrusted ZIP archive with one skill.
//!
//! `plan` decides from the central directory alone whether the archive is accepted, and which files
//! are unpacked. Contents are read only after that, and written to a new folder only; no entry can
//! name a path outside of it.

mod error;
mod limits;
mod pack;
mod plan;
mod unpack;

use std::fs::File;
use std::io::{Read, Seek};

pub use error::{ArchiveError, EntryProblem};
pub use limits::{
    MAX_ARCHIVE_BYTES, MAX_DIRECTORY_BYTES, MAX_ENTRIES, MAX_MEMBER_BYTES, MAX_UNPACKED_BYTES,
};
pub use pack::{PackError, pack};
pub(crate) use unpack::MAX_SKILL_FILE_BYTES;
pub use unpack::{SkillArchive, TextFile};

/// Returns the bytes of one file of an archive, which is validated as for an installation: the file
/// with this name, or else the first one with a name that ends in `/{name}`. `None` if there is no
/// such file. Blocks for a time that depends on the archive.
///
/// # Errors
/// The reason why the archive or the file is rejected.
pub fn member(archive: File, name: &str) -> Result<Option<Vec<u8>>, ArchiveError> {
    unpack::member(archive, name)
}

/// Returns the text files of an archive that `is_wanted` accepts by their paths, in the order of
/// their paths. The archive is validated as for the installation of a skill, but needs none. The
/// wanted files have at most `max_bytes` together. Blocks for a time that depends on the archive.
///
/// # Errors
/// The reason why the archive or a wanted file is rejected.
pub fn text_files(
    archive: impl Read + Seek,
    max_bytes: u64,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Vec<TextFile>, ArchiveError> {
    unpack::text_files(archive, max_bytes, is_wanted)
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
