//! Detects changes of a file without reading it.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// Metadata that identifies one version of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSignature {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileSignature {
    /// Signature of a file with this metadata.
    pub fn of(facts: &Metadata) -> Self {
        Self {
            device: facts.dev(),
            inode: facts.ino(),
            bytes: facts.len(),
            modified: (facts.mtime(), facts.mtime_nsec()),
            changed: (facts.ctime(), facts.ctime_nsec()),
        }
    }
}
