//! Facts of a file that differ if it was written.

use rustix::fs::Stat;

/// Size, times and identity of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Facts {
    /// Size in bytes.
    pub(super) size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    inode: u64,
}

impl From<&Stat> for Facts {
    fn from(stat: &Stat) -> Self {
        Self {
            size: u64::try_from(stat.st_size).unwrap_or_default(),
            modified: (stat.st_mtime as _, stat.st_mtime_nsec as _),
            changed: (stat.st_ctime as _, stat.st_ctime_nsec as _),
            inode: stat.st_ino as _,
        }
    }
}
