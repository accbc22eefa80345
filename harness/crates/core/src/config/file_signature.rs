//! Detects changes of a file without reading it.

use std::fs::Metadata;

/// Metadata that identifies one version of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSignature {
    bytes: u64,
    version: system::Version,
}

impl FileSignature {
    /// Signature of a file with this metadata.
    pub fn of(facts: &Metadata) -> Self {
        Self {
            bytes: facts.len(),
            version: system::Version::of(facts),
        }
    }
}

#[cfg(unix)]
mod system {
    use std::fs::Metadata;
    use std::os::unix::fs::MetadataExt;

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) struct Version {
        device: u64,
        inode: u64,
        modified: (i64, i64),
        changed: (i64, i64),
    }

    impl Version {
        pub(super) fn of(facts: &Metadata) -> Self {
            Self {
                device: facts.dev(),
                inode: facts.ino(),
                modified: (facts.mtime(), facts.mtime_nsec()),
                changed: (facts.ctime(), facts.ctime_nsec()),
            }
        }
    }
}

#[cfg(not(unix))]
mod system {
    use std::fs::Metadata;
    use std::time::SystemTime;

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) struct Version {
        created: Option<SystemTime>,
        modified: Option<SystemTime>,
    }

    impl Version {
        pub(super) fn of(facts: &Metadata) -> Self {
            Self {
                created: facts.created().ok(),
                modified: facts.modified().ok(),
            }
        }
    }
}
