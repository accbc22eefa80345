//! A pending file that becomes visible atomically.

use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use super::file_error::FileFailure;
use super::safe_fs::{NEW_FILE, SafeDir, check_replaceable};
use super::virtual_paths::RelativePath;
use deerflow_core::fail_points;

/// Begin and end of the names of files that are not complete yet.
const UNFINISHED_PREFIX: &str = ".upload-";
const UNFINISHED_SUFFIX: &str = ".part";

/// Reports whether a file of this name is not complete yet.
pub(super) fn is_unfinished_upload(name: &str) -> bool {
    name.starts_with(UNFINISHED_PREFIX) && name.ends_with(UNFINISHED_SUFFIX)
}

/// Durability of a finished write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The operating system may cache the data.
    Cached,
    /// The data is on the disk when the call returns.
    Synced,
}

/// A new file next to its target, under a name that listings omit.
///
/// [`commit`](Self::commit) replaces the target atomically. If the value is dropped before, the
/// file is deleted.
#[derive(Debug)]
pub struct PendingFile {
    dir: SafeDir,
    target: String,
    temporary: String,
    file: File,
    committed: bool,
}

impl SafeDir {
    /// Starts a file that atomically replaces `path` when it is committed. The directory must
    /// exist.
    ///
    /// # Errors
    /// [`FileFailure::IsDirectory`], [`FileFailure::Symlink`], [`FileFailure::NotRegular`],
    /// [`FileFailure::HardLinked`] or [`FileFailure::Permission`] if the existing entry must not be
    /// replaced, and system errors.
    pub fn begin_replace(&self, path: &RelativePath) -> Result<PendingFile, FileFailure> {
        let (parent, name) = path.split_last().ok_or(FileFailure::IsDirectory)?;
        PendingFile::create(self.open_dir(&parent)?, name)
    }
}

impl PendingFile {
    fn create(dir: SafeDir, target: &str) -> Result<Self, FileFailure> {
        let mode = match dir.stat_name(target) {
            Ok(stat) => {
                check_replaceable(&stat)?;
                Some(Mode::from_raw_mode(stat.st_mode & 0o777))
            }
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(errno.into()),
        };
        let (temporary, file) = create_temporary(&dir)?;
        let pending = Self {
            dir,
            target: target.to_owned(),
            temporary,
            file,
            committed: false,
        };
        if let Some(mode) = mode {
            rustix::fs::fchmod(&pending.file, mode)?;
        }
        Ok(pending)
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// [`FileFailure::NoSpace`] and other system errors.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), FileFailure> {
        Ok(self.file.write_all(bytes)?)
    }

    /// Syncs the file and checks the target, so that only the rename remains for
    /// [`commit`](Self::commit).
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn settle(&self) -> Result<(), FileFailure> {
        self.file.sync_all()?;
        self.check_target()
    }

    fn check_target(&self) -> Result<(), FileFailure> {
        match self.dir.stat_name(self.target.as_str()) {
            Ok(stat) => check_replaceable(&stat),
            Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Replaces the target by this file.
    ///
    /// # Errors
    /// As for creation, if the target has changed since, and system errors. The target is unchanged
    /// on error.
    pub fn commit(mut self, durability: Durability) -> Result<(), FileFailure> {
        if durability == Durability::Synced {
            self.file.sync_all()?;
        }
        fail_points::pass("file.written");
        self.check_target()?;
        // If another process creates the target now, that entry itself is replaced: a rename does
        // not follow links.
        rustix::fs::renameat(
            &self.dir,
            self.temporary.as_str(),
            &self.dir,
            self.target.as_str(),
        )?;
        self.committed = true;
        fail_points::pass("file.renamed");
        if durability == Durability::Synced {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            rustix::fs::fsync(rustix::fs::openat(&self.dir, ".", flags, Mode::empty())?)?;
        }
        Ok(())
    }
}

impl Drop for PendingFile {
    fn drop(&mut self) {
        if self.committed {
            return;
        }
        match rustix::fs::unlinkat(&self.dir, self.temporary.as_str(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => {
                tracing::warn!(%errno, name = self.temporary, "cannot remove unfinished file")
            }
        }
    }
}

/// Creates a temporary file. Files of other processes, or of an earlier process with the same id,
/// may have the same name; the next number is tried then.
fn create_temporary(dir: &SafeDir) -> Result<(String, File), FileFailure> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    const MAX_TRIES: usize = 10_000;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for _ in 0..MAX_TRIES {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!(
            "{UNFINISHED_PREFIX}{}-{number}{UNFINISHED_SUFFIX}",
            std::process::id()
        );
        match retry_on_intr(|| rustix::fs::openat(dir, name.as_str(), flags, NEW_FILE)) {
            Ok(fd) => return Ok((name, File::from(fd))),
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Err(Errno::EXIST.into())
}
