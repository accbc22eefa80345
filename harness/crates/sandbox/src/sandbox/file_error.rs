//! Errors of file operations, worded so that a model and a caller can act on them.

use std::io;

use rustix::io::Errno;
use thiserror::Error;

use super::virtual_paths::{PathError, VirtualPath};

/// Error of a file operation. Its text never contains a host path.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// The path is malformed or outside the allowed roots.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The path is valid, but the file or directory cannot be used.
    #[error("{path}: {fault}")]
    At {
        /// File or directory of the operation.
        path: VirtualPath,
        /// Reason.
        #[source]
        fault: FileFailure,
    },
}

impl FileError {
    /// Returns the reason, or `None` if the path itself was rejected.
    pub fn fault(&self) -> Option<&FileFailure> {
        match self {
            Self::Path(_) => None,
            Self::At { fault, .. } => Some(fault),
        }
    }

    /// Reports whether the file or one of its parent directories does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self.fault(), Some(FileFailure::NotFound))
    }
}

/// Reason why a file or directory cannot be used as requested.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileFailure {
    /// The path, or one of its parent directories, does not exist.
    #[error("no such file or directory")]
    NotFound,
    /// The path is a directory, but a file is required.
    #[error("this is a directory, not a file")]
    IsDirectory,
    /// A part of the path that must be a directory is not one.
    #[error("a part of this path is a file, not a directory")]
    NotDirectory,
    /// The path contains a symbolic link or leads out of its root.
    #[error("a part of this path is a symbolic link, and links are not followed")]
    Symlink,
    /// A FIFO, socket or device.
    #[error("this is not a regular file")]
    NotRegular,
    /// The file has several hard links, and a write would change all of them.
    #[error("this file has several hard links and is not written to; copy it first")]
    HardLinked,
    /// The bytes are not UTF-8 text.
    #[error("this is not UTF-8 text; use a tool for binary files, for example through the shell")]
    NotUtf8,
    /// The text to replace does not occur.
    #[error("the text to replace does not occur in this file")]
    TextNotFound,
    /// The file is too large for this operation.
    #[error(
        "{bytes} bytes are more than the {limit} that this operation handles; work on a part of the file through the shell"
    )]
    TooLarge {
        /// Current or resulting size in bytes.
        bytes: u64,
        /// Maximum size in bytes.
        limit: u64,
    },
    /// The content of one write is too long.
    #[error(
        "the content is {bytes} bytes long, the limit of one write is {limit}; \
         write the first part, then add the rest in several calls with append"
    )]
    WriteTooLong {
        /// Length of the content in bytes.
        bytes: u64,
        /// Maximum length in bytes.
        limit: u64,
    },
    /// The operating system denied access.
    #[error("permission denied")]
    Permission,
    /// The disk or the quota is full.
    #[error("no space left")]
    NoSpace,
    /// The file system is mounted read-only.
    #[error("the file system is read-only")]
    ReadOnly,
    /// The path belongs to a skill; skills are read-only within a conversation.
    #[error("skills are read and never changed here; write to /mnt/user-data instead")]
    Unchangeable,
    /// Timeout while waiting for other writes to the same file.
    #[error("other writes to this file are still going on; try again")]
    Busy,
    /// Timeout while waiting for a permit: too many searches or archive reads are running.
    #[error("too many long operations are running; try again later, or with something simpler")]
    Crowded,
    /// The operation panicked or was cancelled.
    #[error("the operation was aborted")]
    Aborted,
    /// Any other error of the operating system.
    #[error("input/output error: {0}")]
    Io(#[source] io::Error),
}

impl FileFailure {
    /// Adds the path of the failed operation.
    pub fn at(self, path: &VirtualPath) -> FileError {
        FileError::At {
            path: path.clone(),
            fault: self,
        }
    }
}

impl From<Errno> for FileFailure {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT => Self::NotFound,
            Errno::ISDIR => Self::IsDirectory,
            Errno::NOTDIR => Self::NotDirectory,
            Errno::LOOP => Self::Symlink,
            Errno::NXIO => Self::NotRegular,
            Errno::ACCESS | Errno::PERM => Self::Permission,
            Errno::NOSPC | Errno::DQUOT => Self::NoSpace,
            Errno::ROFS => Self::ReadOnly,
            other => Self::Io(other.into()),
        }
    }
}

impl From<io::Error> for FileFailure {
    fn from(error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(errno) => errno.into(),
            None => Self::Io(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_disk_and_full_quota_map_to_no_space() {
        assert!(matches!(
            FileFailure::from(Errno::NOSPC),
            FileFailure::NoSpace
        ));
        assert!(matches!(
            FileFailure::from(Errno::DQUOT),
            FileFailure::NoSpace
        ));
        let from_std = io::Error::from_raw_os_error(Errno::NOSPC.raw_os_error());
        assert!(matches!(FileFailure::from(from_std), FileFailure::NoSpace));
    }

    #[test]
    fn read_only_file_system_differs_from_denied_access() {
        assert!(matches!(
            FileFailure::from(Errno::ROFS),
            FileFailure::ReadOnly
        ));
        assert!(matches!(
            FileFailure::from(Errno::ACCESS),
            FileFailure::Permission
        ));
    }

    #[test]
    fn error_text_contains_virtual_path() {
        let path = VirtualPath::parse("/mnt/user-data/outputs/a.txt").expect("valid");
        let error = FileFailure::NotFound.at(&path);
        assert_eq!(
            error.to_string(),
            "/mnt/user-data/outputs/a.txt: no such file or directory"
        );
        assert!(error.is_not_found());
    }
}
