//! The file operations of one thread, in blocking form.

use std::fs::{File, Metadata};
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::MutexGuard;
use rustix::fs::FileType;

use super::fault::{Fault, FileError};
use super::ignore::is_unfinished;
use super::line_range::{LineRange, TextRead};
use super::listing::Listing;
use super::mounts::Mounts;
use super::path_locks::PathLocks;
use super::pending_file::{Durability, PendingFile};
use super::safe_fs::{NodeKind, SHARED_DIR, SafeDir};
use super::shelf::Shelves;
use super::thread_dirs::ThreadDirs;
use super::virtual_paths::{RelativePath, Root, VirtualPath};

/// How much one operation handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileLimits {
    /// The largest file that is read or edited as text, in bytes.
    pub max_text_bytes: u64,
    /// The longest content of one write that replaces a file, in bytes; 0 for no limit of its own.
    pub max_write_bytes: u64,
    /// How many entries one listing looks at.
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

/// What a write does to a file that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// The content takes the place of the old one, in one step.
    Replace,
    /// The content is added at the end.
    Append,
}

/// Which occurrences an edit changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occurrences {
    /// The first one.
    First,
    /// Every one.
    All,
}

/// Facts about a file or directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStat {
    /// What it is.
    pub kind: NodeKind,
    /// Its length in bytes.
    pub bytes: u64,
    /// When it was last changed, as far as the system knows.
    pub modified: Option<SystemTime>,
}

/// A file or directory directly in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryItem {
    /// Its path.
    pub path: VirtualPath,
    /// What is known of it.
    pub stat: FileStat,
}

/// The files of one thread. Every operation may block on the disk: async code uses
/// [`ThreadFiles`](super::files::ThreadFiles).
#[derive(Debug)]
pub struct BlockingFiles {
    pub(super) dirs: ThreadDirs,
    locks: Arc<PathLocks>,
    limits: FileLimits,
    /// What is read besides, and whose.
    pub(super) shelves: Option<(Arc<dyn Shelves>, String)>,
    pub(super) mounts: Mounts,
}

impl BlockingFiles {
    /// The files in `dirs`. All instances that may write to the same thread must share `locks`.
    pub fn new(dirs: ThreadDirs, locks: Arc<PathLocks>, limits: FileLimits) -> Self {
        Self {
            dirs,
            locks,
            limits,
            shelves: None,
            mounts: Mounts::default(),
        }
    }

    /// How many entries one operation looks at.
    pub(super) fn max_entries(&self) -> usize {
        self.limits.max_entries
    }

    /// The directories that the files lie in.
    pub fn dirs(&self) -> &ThreadDirs {
        &self.dirs
    }

    /// Lists a directory and, down to `depth` levels, what is in it, without the
    /// [ignored](super::ignore) names. A root that nothing was written to yet is empty.
    ///
    /// # Errors
    /// [`Fault::NotFound`], [`Fault::NotDirectory`], [`Fault::Symlink`] and what the system reports.
    pub fn list(&self, path: &VirtualPath, depth: usize) -> Result<Listing, FileError> {
        Listing::of(&self.starts(path)?, path, depth, self.limits.max_entries)
            .map_err(|f| f.at(path))
    }

    /// The files and directories directly in a directory, by name, without links, special and unfinished
    /// files and names that no virtual path can have. Skills and mounts are none of a thread's directories.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub fn read_dir(&self, path: &VirtualPath) -> Result<Vec<DirectoryItem>, FileError> {
        let directory = match self.dirs.open(path.root()) {
            Err(Fault::NotFound) if path.relative().is_empty() => return Ok(Vec::new()),
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
            // A file that is gone by now is not in the directory any more.
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
    /// [`Fault::NotFound`], [`Fault::IsDirectory`], [`Fault::NotUtf8`], [`Fault::TooLarge`],
    /// [`Fault::Symlink`], [`Fault::NotRegular`] and what the system reports.
    pub fn read_text(&self, path: &VirtualPath, range: LineRange) -> Result<TextRead, FileError> {
        let content = self.read_whole(path).map_err(|fault| fault.at(path))?;
        Ok(range.select(content))
    }

    /// Writes text, making missing directories.
    ///
    /// # Errors
    /// [`Fault::WriteTooLong`], and as [`begin_write`](Self::begin_write). The file is then as it was.
    pub fn write_text(
        &self,
        path: &VirtualPath,
        content: &str,
        mode: WriteMode,
    ) -> Result<(), FileError> {
        let (bytes, limit) = (content.len() as u64, self.limits.max_write_bytes);
        if mode == WriteMode::Replace && limit != 0 && bytes > limit {
            return Err(Fault::WriteTooLong { bytes, limit }.at(path));
        }
        let _turn = self.lock(path)?;
        match mode {
            WriteMode::Replace => self.replace_whole(path, content.as_bytes(), Durability::Cached),
            WriteMode::Append => self.append(path, content.as_bytes()),
        }
        .map_err(|fault| fault.at(path))
    }

    /// Writes bytes of any number in the place of a file, making missing directories.
    ///
    /// # Errors
    /// As [`begin_write`](Self::begin_write). The file is then as it was.
    pub fn write_bytes(
        &self,
        path: &VirtualPath,
        content: &[u8],
        durability: Durability,
    ) -> Result<(), FileError> {
        let _turn = self.lock(path)?;
        self.replace_whole(path, content, durability)
            .map_err(|fault| fault.at(path))
    }

    /// Starts a file whose content arrives in pieces, making missing directories.
    ///
    /// # Errors
    /// [`Fault::IsDirectory`], [`Fault::Symlink`], [`Fault::HardLinked`], [`Fault::NotRegular`],
    /// [`Fault::Permission`], [`Fault::NoSpace`], [`Fault::ReadOnly`] and what else the system reports.
    pub fn begin_write(&self, path: &VirtualPath) -> Result<PendingFile, FileError> {
        self.begin(path).map_err(|fault| fault.at(path))
    }

    /// Puts a file that [`begin_write`](Self::begin_write) started in its place.
    ///
    /// # Errors
    /// As [`PendingFile::commit`].
    pub fn commit(
        &self,
        path: &VirtualPath,
        file: PendingFile,
        durability: Durability,
    ) -> Result<(), FileError> {
        let _turn = self.lock(path)?;
        file.commit(durability).map_err(|fault| fault.at(path))
    }

    /// Replaces text in a file and says how often. An empty `old` occurs nowhere and changes nothing in a file that is there.
    ///
    /// # Errors
    /// [`Fault::TextNotFound`], and as [`read_text`](Self::read_text) and [`begin_write`](Self::begin_write).
    pub fn replace(
        &self,
        path: &VirtualPath,
        old: &str,
        new: &str,
        which: Occurrences,
    ) -> Result<usize, FileError> {
        let _turn = self.lock(path)?;
        self.edit(path, old, new, which)
            .map_err(|fault| fault.at(path))
    }

    /// Writes text in the place of a text file that exists, if `is_expected` says so of the present text; `false` when it
    /// does not. No other write through these files comes between the look and the write.
    ///
    /// # Errors
    /// As [`read_text`](Self::read_text) and [`begin_write`](Self::begin_write). The file is then as it was.
    pub fn replace_if(
        &self,
        path: &VirtualPath,
        content: &str,
        durability: Durability,
        is_expected: impl FnOnce(&str) -> bool,
    ) -> Result<bool, FileError> {
        let _turn = self.lock(path)?;
        let present = self.read_whole(path).map_err(|fault| fault.at(path))?;
        if !is_expected(&present) {
            return Ok(false);
        }
        self.replace_whole(path, content.as_bytes(), durability)
            .map_err(|fault| fault.at(path))?;
        Ok(true)
    }

    /// What a path is; nothing when nothing is there. A root always exists.
    ///
    /// # Errors
    /// [`Fault::Symlink`], [`Fault::NotDirectory`] and what the system reports.
    pub fn stat(&self, path: &VirtualPath) -> Result<Option<FileStat>, FileError> {
        let part_of_names = FileStat {
            kind: NodeKind::Directory,
            bytes: 0,
            modified: None,
        };
        match self.place(path).and_then(|(start, way)| start.stat(&way)) {
            Ok(stat) => Ok(Some(FileStat::from_raw(&stat))),
            Err(Fault::NotFound) if path.relative().is_empty() => Ok(Some(part_of_names)),
            Err(Fault::IsDirectory) => Ok(Some(part_of_names)),
            Err(Fault::NotFound) => Ok(None),
            Err(fault) => Err(fault.at(path)),
        }
    }

    /// Opens a file for reading, with the facts about exactly the file that was opened.
    ///
    /// # Errors
    /// [`Fault::NotFound`], [`Fault::IsDirectory`], [`Fault::Symlink`], [`Fault::NotRegular`] and what
    /// the system reports.
    pub fn open_read(&self, path: &VirtualPath) -> Result<(File, Metadata), FileError> {
        self.place(path)
            .and_then(|(start, way)| start.open_read(&way))
            .map_err(|fault| fault.at(path))
    }

    /// Reads a whole file of at most `max_bytes`.
    ///
    /// # Errors
    /// [`Fault::TooLarge`], and as [`open_read`](Self::open_read).
    pub fn read_bytes(&self, path: &VirtualPath, max_bytes: u64) -> Result<Vec<u8>, FileError> {
        let (file, facts) = self.open_read(path)?;
        let mut content = Vec::new();
        // The file may grow while it is read.
        file.take(max_bytes.saturating_add(1))
            .read_to_end(&mut content)
            .map_err(|error| Fault::from(error).at(path))?;
        let bytes = facts.len().max(content.len() as u64);
        if bytes > max_bytes {
            Err(Fault::TooLarge {
                bytes,
                limit: max_bytes,
            }
            .at(path))
        } else {
            Ok(content)
        }
    }

    /// Removes a file. `false` when there was none.
    ///
    /// # Errors
    /// [`Fault::IsDirectory`], [`Fault::Symlink`] and what the system reports.
    pub fn remove_file(&self, path: &VirtualPath) -> Result<bool, FileError> {
        let _turn = self.lock(path)?;
        match self
            .place_to_remove(path)
            .and_then(|(start, way)| start.remove_file(&way))
        {
            Ok(()) => Ok(true),
            Err(Fault::NotFound) => Ok(false),
            Err(fault) => Err(fault.at(path)),
        }
    }

    pub(super) fn lock(&self, path: &VirtualPath) -> Result<MutexGuard<'_, ()>, FileError> {
        // What is mounted is the same for all threads.
        let thread = (path.root() != Root::Mounts).then(|| self.dirs.key());
        self.locks
            .lock(&(thread, path))
            .ok_or_else(|| Fault::Busy.at(path))
    }

    fn read_whole(&self, path: &VirtualPath) -> Result<String, Fault> {
        let limit = self.limits.max_text_bytes;
        let (start, way) = self.place(path)?;
        let (file, metadata) = start.open_read(&way)?;
        if metadata.len() > limit {
            return Err(Fault::TooLarge {
                bytes: metadata.len(),
                limit,
            });
        }
        let mut content = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default());
        // The file may grow while it is read.
        file.take(limit + 1).read_to_end(&mut content)?;
        if content.len() as u64 > limit {
            return Err(Fault::TooLarge {
                bytes: content.len() as u64,
                limit,
            });
        }
        String::from_utf8(content).map_err(|_| Fault::NotUtf8)
    }

    fn begin(&self, path: &VirtualPath) -> Result<PendingFile, Fault> {
        let (start, way) = self.place_with_parents(path)?;
        start.begin_replace(&way)
    }

    pub(super) fn replace_whole(
        &self,
        path: &VirtualPath,
        content: &[u8],
        durability: Durability,
    ) -> Result<(), Fault> {
        let mut pending = self.begin(path)?;
        pending.write(content)?;
        pending.commit(durability)
    }

    fn append(&self, path: &VirtualPath, content: &[u8]) -> Result<(), Fault> {
        let (start, way) = self.place_with_parents(path)?;
        let (mut file, before) = start.open_append(&way)?;
        let written = file.write_all(content);
        if written.is_err() {
            // Half of the content is worse than none: the next attempt would repeat it.
            file.set_len(before.len())?;
        }
        Ok(written?)
    }

    fn edit(
        &self,
        path: &VirtualPath,
        old: &str,
        new: &str,
        which: Occurrences,
    ) -> Result<usize, Fault> {
        let content = self.read_whole(path)?;
        if old.is_empty() {
            return Ok(0);
        }
        let found = content.matches(old).count();
        let replaced = match which {
            Occurrences::First => found.min(1),
            Occurrences::All => found,
        };
        if replaced == 0 {
            return Err(Fault::TextNotFound);
        }
        let (removed, added) = (
            old.len().saturating_mul(replaced),
            new.len().saturating_mul(replaced),
        );
        let bytes = content.len().saturating_sub(removed).saturating_add(added) as u64;
        let limit = self.limits.max_text_bytes;
        if bytes > limit {
            return Err(Fault::TooLarge { bytes, limit });
        }
        let edited = content.replacen(old, new, replaced);
        self.replace_whole(path, edited.as_bytes(), Durability::Cached)?;
        Ok(replaced)
    }

    /// Where the path is written, with the directory that it lies in made if it was missing.
    fn place_with_parents(&self, path: &VirtualPath) -> Result<(SafeDir, RelativePath), Fault> {
        let (start, way) = self.place_to_write(path)?;
        let (parent, _) = way.split_last().ok_or(Fault::IsDirectory)?;
        start.create_dirs(&parent, SHARED_DIR)?;
        Ok((start, way))
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
