//! Read operations on the files of one thread, in blocking form.

use std::fs::{File, Metadata};
use std::io::Read;
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::MutexGuard;
use rustix::fs::FileType;

use super::file_error::{FileError, FileFailure};
use super::ignore::is_unfinished;
use super::line_range::{LineRange, TextRead};
use super::mounts::Mounts;
use super::path_locks::PathLocks;
use super::safe_fs::NodeKind;
use super::skill_mounts::SkillMountSource;
use super::thread_dirs::ThreadDirs;
use super::virtual_paths::{Root, VirtualPath};

/// Size limits of a file operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileLimits {
    /// Maximum size of a file that is read or edited as text, in bytes.
    pub max_text_bytes: u64,
    /// Maximum content of one replacing write, in bytes; 0 disables this limit.
    pub max_write_bytes: u64,
    /// Maximum number of directory entries that one listing reads.
    pub max_entries: usize,
}

impl Default for FileLimits {
    fn default() -> Self {
        Self {
            max_text_bytes: 10 * 1024 * 1024,
            max_write_bytes: 80 * 1024,
            max_entries: 10_000,
        }
    }
}

/// Effect of a write on an existing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// Replaces the old content atomically.
    Replace,
    /// Appends the content.
    Append,
}

/// Occurrences that an edit replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occurrences {
    /// The first occurrence.
    First,
    /// All occurrences.
    All,
}

/// Metadata of a file or directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStat {
    /// Kind of the node.
    pub kind: NodeKind,
    /// Length in bytes.
    pub bytes: u64,
    /// Time of the last modification, if the system reports it.
    pub modified: Option<SystemTime>,
}

/// A direct child of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryItem {
    /// Virtual path of the child.
    pub path: VirtualPath,
    /// Metadata of the child.
    pub stat: FileStat,
}

/// Files of one thread. Every operation may block on the disk; async code uses
/// [`ThreadFiles`](super::files::ThreadFiles).
#[derive(Debug)]
pub struct BlockingFiles {
    pub(super) dirs: ThreadDirs,
    locks: Arc<PathLocks>,
    pub(super) limits: FileLimits,
    /// Source of the mounted skills, and the user id to query it with.
    pub(super) skill_mounts: Option<(Arc<dyn SkillMountSource>, String)>,
    pub(super) mounts: Mounts,
}

impl BlockingFiles {
    /// Creates access to the files in `dirs`. All instances that may write to the same thread must
    /// share `locks`.
    pub fn new(dirs: ThreadDirs, locks: Arc<PathLocks>, limits: FileLimits) -> Self {
        Self {
            dirs,
            locks,
            limits,
            skill_mounts: None,
            mounts: Mounts::default(),
        }
    }

    /// Maximum number of directory entries that one operation reads.
    pub(super) fn max_entries(&self) -> usize {
        self.limits.max_entries
    }

    /// Directories that contain the files.
    pub fn dirs(&self) -> &ThreadDirs {
        &self.dirs
    }

    /// Returns the direct children of a directory, sorted by name. Links, special files, unfinished
    /// files and names that no virtual path can express are omitted. Skills and mounts are not
    /// supported.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub fn read_dir(&self, path: &VirtualPath) -> Result<Vec<DirectoryItem>, FileError> {
        let directory = match self.dirs.open(path.root()) {
            Err(FileFailure::NotFound) if path.relative().is_empty() => return Ok(Vec::new()),
            root => root
                .and_then(|root| root.open_dir(path.relative()))
                .map_err(|f| f.at(path))?,
        };
        let (entries, _) = directory
            .entries(self.limits.max_entries)
            .map_err(|f| f.at(path))?;
        let mut items = Vec::new();
        for entry in entries {
            let Ok(name) = entry.name.to_str() else {
                continue;
            };
            if entry.kind == NodeKind::Other || is_unfinished(name) {
                continue;
            }
            let Ok(relative) = path.relative().join(name) else {
                continue;
            };
            // The file was removed after the directory was read.
            let Ok(stat) = directory.stat_name(name) else {
                continue;
            };
            let path = VirtualPath::new(path.root(), relative);
            items.push(DirectoryItem {
                path,
                stat: FileStat::from_raw(&stat),
            });
        }
        items.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(items)
    }

    /// Reads lines of a text file.
    ///
    /// # Errors
    /// [`FileFailure::NotFound`], [`FileFailure::IsDirectory`], [`FileFailure::NotUtf8`],
    /// [`FileFailure::TooLarge`], [`FileFailure::Symlink`], [`FileFailure::NotRegular`] and system
    /// errors.
    pub fn read_text(&self, path: &VirtualPath, range: LineRange) -> Result<TextRead, FileError> {
        let content = self.read_whole(path).map_err(|fault| fault.at(path))?;
        Ok(range.select(content))
    }

    /// Returns the metadata of a path, or `None` if it does not exist. A root always exists.
    ///
    /// # Errors
    /// [`FileFailure::Symlink`], [`FileFailure::NotDirectory`] and system errors.
    pub fn stat(&self, path: &VirtualPath) -> Result<Option<FileStat>, FileError> {
        let virtual_directory = FileStat {
            kind: NodeKind::Directory,
            bytes: 0,
            modified: None,
        };
        match self
            .resolve(path)
            .and_then(|(start, relative)| start.stat(&relative))
        {
            Ok(stat) => Ok(Some(FileStat::from_raw(&stat))),
            Err(FileFailure::NotFound) if path.relative().is_empty() => Ok(Some(virtual_directory)),
            Err(FileFailure::IsDirectory) => Ok(Some(virtual_directory)),
            Err(FileFailure::NotFound) => Ok(None),
            Err(fault) => Err(fault.at(path)),
        }
    }

    /// Opens a file for reading and returns the metadata of the opened file.
    ///
    /// # Errors
    /// [`FileFailure::NotFound`], [`FileFailure::IsDirectory`], [`FileFailure::Symlink`],
    /// [`FileFailure::NotRegular`] and system errors.
    pub fn open_read(&self, path: &VirtualPath) -> Result<(File, Metadata), FileError> {
        self.resolve(path)
            .and_then(|(start, relative)| start.open_read(&relative))
            .map_err(|fault| fault.at(path))
    }

    /// Reads a whole file of at most `max_bytes` bytes.
    ///
    /// # Errors
    /// [`FileFailure::TooLarge`], and as [`open_read`](Self::open_read).
    pub fn read_bytes(&self, path: &VirtualPath, max_bytes: u64) -> Result<Vec<u8>, FileError> {
        let (file, facts) = self.open_read(path)?;
        let mut content = Vec::new();
        // The file may grow while it is read.
        file.take(max_bytes.saturating_add(1))
            .read_to_end(&mut content)
            .map_err(|error| FileFailure::from(error).at(path))?;
        let bytes = facts.len().max(content.len() as u64);
        if bytes > max_bytes {
            Err(FileFailure::TooLarge {
                bytes,
                limit: max_bytes,
            }
            .at(path))
        } else {
            Ok(content)
        }
    }

    /// Removes a file. Returns `false` if there was none.
    ///
    /// # Errors
    /// [`FileFailure::IsDirectory`], [`FileFailure::Symlink`] and system errors.
    pub fn remove_file(&self, path: &VirtualPath) -> Result<bool, FileError> {
        let _lock = self.lock(path)?;
        match self
            .resolve_for_removal(path)
            .and_then(|(start, relative)| start.remove_file(&relative))
        {
            Ok(()) => Ok(true),
            Err(FileFailure::NotFound) => Ok(false),
            Err(fault) => Err(fault.at(path)),
        }
    }

    pub(super) fn lock(&self, path: &VirtualPath) -> Result<MutexGuard<'_, ()>, FileError> {
        // Mounts are shared by all threads, so their locks are too.
        let thread = (path.root() != Root::Mounts).then(|| self.dirs.key());
        self.locks
            .lock(&(thread, path))
            .ok_or_else(|| FileFailure::Busy.at(path))
    }

    pub(super) fn read_whole(&self, path: &VirtualPath) -> Result<String, FileFailure> {
        let limit = self.limits.max_text_bytes;
        let (start, relative) = self.resolve(path)?;
        let (file, metadata) = start.open_read(&relative)?;
        if metadata.len() > limit {
            return Err(FileFailure::TooLarge {
                bytes: metadata.len(),
                limit,
            });
        }
        let mut content = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default());
        // The file may grow while it is read.
        file.take(limit + 1).read_to_end(&mut content)?;
        if content.len() as u64 > limit {
            return Err(FileFailure::TooLarge {
                bytes: content.len() as u64,
                limit,
            });
        }
        String::from_utf8(content).map_err(|_| FileFailure::NotUtf8)
    }
}

impl FileStat {
    fn from_raw(stat: &rustix::fs::Stat) -> Self {
        let seconds = u64::try_from(stat.st_mtime).unwrap_or_default();
        let nanoseconds = u32::try_from(stat.st_mtime_nsec).unwrap_or_default();
        Self {
            kind: FileType::from_raw_mode(stat.st_mode).into(),
            bytes: u64::try_from(stat.st_size).unwrap_or_default(),
            modified: SystemTime::UNIX_EPOCH
                .checked_add(std::time::Duration::new(seconds, nanoseconds)),
        }
    }
}

#[cfg(test)]
#[path = "blocking_files_tests.rs"]
mod tests;
