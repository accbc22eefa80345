//! Copy of a thread's files to a new thread.
//!
//! The copy is written before the new thread has a row. The marker `.copying-{thread}` records it,
//! so that the sweep finds the files if the process dies in between. A sweep of another process
//! ignores a young marker, because its copy may still be running.

use std::ffi::CString;
use std::fs::File;
use std::io::Read;
use std::time::Duration;

use deerflow_core::fail_points;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::file_error::FileFailure;
use super::safe_fs::{Entry, NEW_FILE, NodeKind, PRIVATE_DIR, SafeDir};
use super::thread_dirs::ThreadDirs;
use super::thread_files::ThreadFiles;
use super::virtual_paths::Root;

pub(super) const COPY_PREFIX: &str = ".copying-";
/// Age from which the marker of a copy counts as abandoned. Longer than any copy takes.
pub(super) const ABANDONED: Duration = Duration::from_secs(3_600);
/// Maximum depth of copied directories: each level needs two file handles.
const MAX_DEPTH: usize = 64;

/// Limits of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyLimits {
    /// Maximum total size of the files in bytes.
    pub bytes: u64,
    /// Maximum number of files, directories and links.
    pub entries: usize,
}

impl Default for CopyLimits {
    fn default() -> Self {
        Self {
            bytes: 1 << 30,
            entries: 200_000,
        }
    }
}

impl ThreadFiles {
    /// Copies the workspace, the uploads and the outputs of this thread to `target`, a new thread of
    /// the same user. Returns `false` if there are none.
    ///
    /// Links are copied as links and never followed; FIFOs, sockets and devices are omitted. The
    /// files are marked as a copy until `target` [removes](Self::forget_removal) the marker.
    ///
    /// # Errors
    /// [`FileFailure::TooLarge`], [`FileFailure::Crowded`] and system errors. The caller removes
    /// what was copied.
    pub async fn copy_to(&self, target: &Self, limits: CopyLimits) -> Result<bool, FileFailure> {
        let (from, to) = (
            self.blocking().dirs().clone(),
            target.blocking().dirs().clone(),
        );
        self.run_limited(move || copy_thread(&from, &to, limits))
            .await
    }
}

fn copy_thread(
    from: &ThreadDirs,
    to: &ThreadDirs,
    limits: CopyLimits,
) -> Result<bool, FileFailure> {
    let roots = opened_roots(from)?;
    if roots.is_empty() {
        return Ok(false);
    }
    to.note_copy()?;
    let mut copy = Copy {
        limits,
        bytes: 0,
        entries: 0,
    };
    for (root, source) in roots {
        copy.tree(source, to.create(root)?)?;
    }
    Ok(true)
}

fn opened_roots(dirs: &ThreadDirs) -> Result<Vec<(Root, SafeDir)>, FileFailure> {
    let mut roots = Vec::new();
    for root in Root::ALL {
        match dirs.open(root) {
            Err(FileFailure::NotFound) => {}
            opened => roots.push((root, opened?)),
        }
    }
    Ok(roots)
}

impl ThreadDirs {
    /// Creates the marker that the thread's files are a copy whose row does not exist yet.
    fn note_copy(&self) -> Result<(), FileFailure> {
        let (threads, thread) = self.thread.split_last().ok_or(FileFailure::NotFound)?;
        std::fs::create_dir_all(&self.home)?;
        let threads =
            SafeDir::open_trusted(&self.home, self.resolver)?.create_dirs(&threads, PRIVATE_DIR)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&threads, format!("{COPY_PREFIX}{thread}"), flags, NEW_FILE)?;
        Ok(())
    }
}

/// A directory whose remaining entries are to be copied.
struct Level {
    from: SafeDir,
    to: SafeDir,
    entries: Vec<Entry>,
}

/// Progress of a copy.
struct Copy {
    limits: CopyLimits,
    bytes: u64,
    entries: usize,
}

impl Copy {
    fn tree(&mut self, from: SafeDir, to: SafeDir) -> Result<(), FileFailure> {
        let mut levels = vec![self.level(from, to)?];
        while let Some(level) = levels.last_mut() {
            let Some(entry) = level.entries.pop() else {
                levels.pop();
                continue;
            };
            match entry.kind {
                NodeKind::File => self.file(&level.from, &level.to, &entry.name)?,
                NodeKind::Other => link(&level.from, &level.to, &entry.name)?,
                NodeKind::Directory => {
                    let Some((from, to)) = directory(&level.from, &level.to, &entry.name)? else {
                        continue;
                    };
                    if levels.len() == MAX_DEPTH {
                        return Err(self.too_large());
                    }
                    let next = self.level(from, to)?;
                    levels.push(next);
                }
            }
        }
        Ok(())
    }

    /// Reads the entries of a directory and counts them.
    fn level(&mut self, from: SafeDir, to: SafeDir) -> Result<Level, FileFailure> {
        let (entries, more) = from.entries(self.limits.entries - self.entries)?;
        if more {
            return Err(self.too_large());
        }
        self.entries += entries.len();
        Ok(Level { from, to, entries })
    }

    fn file(&mut self, from: &SafeDir, to: &SafeDir, name: &CString) -> Result<(), FileFailure> {
        let Some(source) = from.open_regular(name)? else {
            return Ok(());
        };
        let remaining = self.limits.bytes - self.bytes;
        if source.metadata()?.len() > remaining {
            return Err(self.too_large());
        }
        let write =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut target = File::from(rustix::fs::openat(
            to,
            name.as_c_str(),
            write,
            mode(&source)?,
        )?);
        // The file may grow while it is read.
        let copied = std::io::copy(&mut source.take(remaining + 1), &mut target)?;
        if copied > remaining {
            return Err(self.too_large());
        }
        self.bytes += copied;
        fail_points::pass("branch.file_copied");
        Ok(())
    }

    fn too_large(&self) -> FileFailure {
        FileFailure::TooLarge {
            bytes: self.bytes.saturating_add(1).max(self.limits.bytes),
            limit: self.limits.bytes,
        }
    }
}

/// Returns the permissions of a copied file: those of its source, writable for the owner.
fn mode(source: &File) -> Result<Mode, FileFailure> {
    let mode = Mode::from_raw_mode(rustix::fs::fstat(source)?.st_mode);
    Ok((mode & Mode::from_raw_mode(0o777)) | Mode::RUSR | Mode::WUSR)
}

/// Creates a directory in the copy. `None` if the source is no longer one.
fn directory(
    from: &SafeDir,
    to: &SafeDir,
    name: &CString,
) -> Result<Option<(SafeDir, SafeDir)>, FileFailure> {
    let source = match from.enter(name) {
        Err(FileFailure::NotFound | FileFailure::NotDirectory | FileFailure::Symlink) => {
            return Ok(None);
        }
        opened => opened?,
    };
    let mode = Mode::from_raw_mode(rustix::fs::fstat(&source)?.st_mode);
    let mode = (mode & Mode::from_raw_mode(0o777)) | Mode::RWXU;
    rustix::fs::mkdirat(to, name.as_c_str(), mode)?;
    Ok(Some((source, to.enter(name)?)))
}

/// Copies a symbolic link as it is. Omits FIFOs, sockets and devices.
fn link(from: &SafeDir, to: &SafeDir, name: &CString) -> Result<(), FileFailure> {
    match rustix::fs::readlinkat(from, name.as_c_str(), Vec::new()) {
        Ok(target) => Ok(rustix::fs::symlinkat(target, to, name.as_c_str())?),
        Err(Errno::INVAL | Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Returns `true` if the marker of a copy is older than any running copy.
pub(super) fn is_abandoned(threads: &SafeDir, marker: &str) -> bool {
    let Ok(stat) = threads.stat_name(marker) else {
        return false;
    };
    let modified = std::time::UNIX_EPOCH
        + Duration::from_secs(u64::try_from(stat.st_mtime).unwrap_or_default());
    modified.elapsed().is_ok_and(|age| age >= ABANDONED)
}

/// Removes the marker of a copy.
pub(super) fn forget_copy(threads: &SafeDir, thread: &str) -> Result<(), FileFailure> {
    match rustix::fs::unlinkat(threads, format!("{COPY_PREFIX}{thread}"), AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
#[path = "copy_tests.rs"]
mod tests;
