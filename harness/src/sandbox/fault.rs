//! What can go wrong with a file, in words that a model and a caller can act on.

use std::io;

use rustix::io::Errno;
use thiserror::Error;

use super::virtual_paths::{PathError, VirtualPath};

/// A file operation that did not happen. Its text never contains a host path.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// The path is outside the allowed roots or malformed.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The path is fine, what lies there is not.
    #[error("{path}: {fault}")]
    At {
        /// The file or directory that was asked for.
        path: VirtualPath,
        /// What is wrong with it.
        #[source]
        fault: Fault,
    },
}

impl FileError {
    /// What is wrong with the file; nothing when the path itself was refused.
    pub fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Path(_) => None,
            Self::At { fault, .. } => Some(fault),
        }
    }

    /// Whether the file or a directory on the way to it does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self.fault(), Some(Fault::NotFound))
    }
}

/// Why a file or directory cannot be used as asked.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Fault {
    /// It, or a directory on the way, does not exist.
    #[error("no such file or directory")]
    NotFound,
    /// A file was needed.
    #[error("this is a directory, not a file")]
    IsDirectory,
    /// A directory was needed, here or on the way.
    #[error("a part of this path is a file, not a directory")]
    NotDirectory,
    /// It, or a directory on the way, is a symbolic link, or the way left its root.
    #[error("a part of this path is a symbolic link, and links are not followed")]
    Symlink,
    /// A FIFO, socket or device.
    #[error("this is not a regular file")]
    NotRegular,
    /// The file has further names, which a write would change too.
    #[error("this file has several hard links and is not written to; copy it first")]
    HardLinked,
    /// The bytes are not UTF-8 text.
    #[error("this is not UTF-8 text; use a tool for binary files, for example through the shell")]
    NotUtf8,
    /// The text to replace does not occur.
    #[error("the text to replace does not occur in this file")]
    TextNotFound,
    /// The file is too large to be handled in one piece.
    #[error(
        "{bytes} bytes are more than the {limit} that this operation handles; work on a part of the file through the shell"
    )]
    TooLarge {
        /// How large it is or would become.
        bytes: u64,
        /// How large it may be.
        limit: u64,
    },
    /// The content of one write is too long.
    #[error(
        "the content is {bytes} bytes long, the limit of one write is {limit}; \
         write the first part, then add the rest in several calls with append"
    )]
    WriteTooLong {
        /// How long the content is.
        bytes: u64,
        /// How long it may be.
        limit: u64,
    },
    /// The operating system denies it.
    #[error("permission denied")]
    Permission,
    /// The disk or the quota is full.
    #[error("no space left")]
    NoSpace,
    /// The file system is mounted read-only.
    #[error("the file system is read-only")]
    ReadOnly,
    /// A skill, which nobody changes from within a conversation.
    #[error("skills are read and never changed here; write to /mnt/user-data instead")]
    Unchangeable,
    /// Other writes to the same file did not finish in time.
    #[error("other writes to this file are still going on; try again")]
    Busy,
    /// Other searches, or readings of archives, did not finish in time.
    #[error("too much that takes long is going on; try again later, or with something simpler")]
    Crowded,
    /// The operation broke off inside this program.
    #[error("the operation was aborted")]
    Aborted,
    /// Anything else that the operating system reports.
    #[error("input/output error: {0}")]
    Io(#[source] io::Error),
}

impl Fault {
    /// Says where it happened.
    pub fn at(self, path: &VirtualPath) -> FileError {
        FileError::At {
            path: path.clone(),
            fault: self,
        }
    }
}

impl From<Errno> for Fault {
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

impl From<io::Error> for Fault {
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
    fn a_full_disk_and_a_full_quota_are_no_space() {
        assert!(matches!(Fault::from(Errno::NOSPC), Fault::NoSpace));
        assert!(matches!(Fault::from(Errno::DQUOT), Fault::NoSpace));
        let from_std = io::Error::from_raw_os_error(Errno::NOSPC.raw_os_error());
        assert!(matches!(Fault::from(from_std), Fault::NoSpace));
    }

    #[test]
    fn a_read_only_file_system_and_denied_access_are_told_apart() {
        assert!(matches!(Fault::from(Errno::ROFS), Fault::ReadOnly));
        assert!(matches!(Fault::from(Errno::ACCESS), Fault::Permission));
    }

    #[test]
    fn the_text_names_the_virtual_path() {
        let path = VirtualPath::parse("/mnt/user-data/outputs/a.txt").expect("valid");
        let error = Fault::NotFound.at(&path);
        assert_eq!(
            error.to_string(),
            "/mnt/user-data/outputs/a.txt: no such file or directory"
        );
        assert!(error.is_not_found());
    }
}
