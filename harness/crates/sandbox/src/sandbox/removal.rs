//! Removal of a thread's files, and cleanup of removals that were interrupted.
//!
//! A folder is first renamed to `.removing-{thread}.{number}`, so that a thread of the same id can
//! be created at once; every folder with such a name is trash. A process may also die after it
//! deleted the thread's row and before this rename. So it first creates the marker
//! `.removed-{thread}`, and the cleanup need not guess which folders without a row are trash.

use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, OFlags};
use rustix::io::Errno;

use super::copy::{self, COPY_PREFIX};
use super::file_error::FileFailure;
use super::remove_tree::remove_tree;
use super::safe_fs::{Entry, NEW_FILE, NodeKind, Resolver, SafeDir};
use super::thread_dirs::{ThreadDirs, UserDirName};
use super::virtual_paths::RelativePath;
use deerflow_core::ids::ThreadId;

const TRASH_PREFIX: &str = ".removing-";
const MARKER_PREFIX: &str = ".removed-";
/// Maximum number of trash names per thread.
const MAX_TRASH_NAMES: usize = 1_000;
/// Maximum number of directory entries that one scan reads.
const MAX_ENTRIES: usize = 1_000_000;

/// Thread with a removal marker: its database row was about to be deleted, and its folder may still
/// exist.
#[derive(Debug, Clone)]
pub struct OrphanedThread {
    /// Thread id.
    pub thread: ThreadId,
    dirs: ThreadDirs,
}

impl OrphanedThread {
    /// Removes the remaining files. May block on the disk.
    ///
    /// # Errors
    /// As [`ThreadDirs::remove`].
    pub fn remove(&self) -> Result<bool, FileFailure> {
        self.dirs.remove()
    }
}

impl ThreadDirs {
    /// Creates the marker that the thread's row is about to be removed.
    ///
    /// # Errors
    /// System errors.
    pub fn note_removal(&self) -> Result<(), FileFailure> {
        let Some((threads, thread)) = self.threads_dir()? else {
            return Ok(());
        };
        if threads
            .stat_name(thread.as_str())
            .is_err_and(|errno| errno == Errno::NOENT)
        {
            return Ok(());
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(
            &threads,
            format!("{MARKER_PREFIX}{thread}"),
            flags,
            NEW_FILE,
        )?;
        Ok(())
    }

    /// Removes the markers of a removal and of a copy: the row stays.
    ///
    /// # Errors
    /// System errors.
    pub fn forget_removal(&self) -> Result<(), FileFailure> {
        let Some((threads, thread)) = self.threads_dir()? else {
            return Ok(());
        };
        match rustix::fs::unlinkat(
            &threads,
            format!("{MARKER_PREFIX}{thread}"),
            AtFlags::empty(),
        ) {
            Ok(()) | Err(Errno::NOENT) => copy::forget_copy(&threads, &thread),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Removes all files of the thread. Returns `false` if there were none.
    ///
    /// # Errors
    /// See [`remove_tree`]. Remaining files are already renamed and no longer belong to the thread;
    /// `sweep` retries their removal.
    pub fn remove(&self) -> Result<bool, FileFailure> {
        let Some((threads, thread)) = self.threads_dir()? else {
            return Ok(false);
        };
        let mut removed = false;
        let mut failed = None;
        for number in 0..MAX_TRASH_NAMES {
            let trash = format!("{TRASH_PREFIX}{thread}.{number}");
            let name_is_taken =
                match rustix::fs::renameat(&threads, thread.as_str(), &threads, trash.as_str()) {
                    Ok(()) | Err(Errno::NOENT) => false,
                    // An earlier removal did not finish.
                    Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => true,
                    Err(errno) => return Err(errno.into()),
                };
            match remove_tree(&threads, &RelativePath::of_plain_names(&[&trash])) {
                Ok(found) => removed |= found,
                Err(fault) => failed = Some(fault),
            }
            if !name_is_taken {
                break;
            }
        }
        self.forget_removal()?;
        failed.map_or(Ok(removed), Err)
    }

    /// Opens the parent folder of the thread's folder, if it exists, and returns it with the
    /// thread's folder name.
    fn threads_dir(&self) -> Result<Option<(SafeDir, String)>, FileFailure> {
        let Some((threads, thread)) = self.thread.split_last() else {
            return Ok(None);
        };
        match SafeDir::open_trusted(&self.home, self.resolver)
            .and_then(|home| home.open_dir(&threads))
        {
            Err(FileFailure::NotFound) => Ok(None),
            opened => Ok(Some((opened?, thread.to_owned()))),
        }
    }
}

/// Removes the trash folders of all users and returns the threads that have a removal marker. May
/// block on the disk.
///
/// # Errors
/// If the folder of users cannot be read. Folders that cannot be removed are logged.
pub(super) fn sweep(
    home: &Arc<Path>,
    resolver: Resolver,
) -> Result<Vec<OrphanedThread>, FileFailure> {
    let users = RelativePath::of_plain_names(&["users"]);
    let users = match SafeDir::open_trusted(home, resolver).and_then(|home| home.open_dir(&users)) {
        Err(FileFailure::NotFound) => return Ok(Vec::new()),
        opened => opened?,
    };
    let mut orphans = Vec::new();
    for user in directories(&users)? {
        let Ok(path) = RelativePath::parse(&format!("{user}/threads")) else {
            continue;
        };
        let swept = users
            .open_dir(&path)
            .and_then(|threads| sweep_user(&threads));
        match swept {
            Ok(marked) => orphans.extend(marked.into_iter().map(|thread| {
                let dirs = ThreadDirs::of_user_dir(Arc::clone(home), resolver, &user, &thread);
                OrphanedThread { thread, dirs }
            })),
            Err(FileFailure::NotFound) => {}
            Err(error) => {
                tracing::error!(%error, "cannot read the thread folders of a user")
            }
        }
    }
    Ok(orphans)
}

/// Removes the folder of a user. Returns `false` if there was none. May block on the disk.
///
/// # Errors
/// See [`remove_tree`].
pub(super) fn remove_user(
    home: &Arc<Path>,
    resolver: Resolver,
    user: &UserDirName,
) -> Result<bool, FileFailure> {
    let path = RelativePath::of_plain_names(&["users", user.as_str()]);
    match SafeDir::open_trusted(home, resolver) {
        Err(FileFailure::NotFound) => Ok(false),
        opened => remove_tree(&opened?, &path),
    }
}

/// Removes the trash folders of one user and returns the threads that have a removal marker.
fn sweep_user(threads: &SafeDir) -> Result<Vec<ThreadId>, FileFailure> {
    let mut marked = Vec::new();
    for Entry { name, kind } in threads.entries(MAX_ENTRIES)?.0 {
        let Ok(name) = name.into_string() else {
            continue;
        };
        if let Some(thread) = name.strip_prefix(MARKER_PREFIX) {
            marked.extend(ThreadId::parse(thread));
        } else if let Some(thread) = name.strip_prefix(COPY_PREFIX) {
            if copy::is_abandoned(threads, &name) {
                marked.extend(ThreadId::parse(thread));
            }
        } else if name.starts_with(TRASH_PREFIX)
            && kind == NodeKind::Directory
            && let Ok(path) = RelativePath::parse(&name)
            && let Err(error) = remove_tree(threads, &path)
        {
            tracing::error!(%error, name, "cannot remove the files of a deleted thread");
        }
    }
    Ok(marked)
}

fn directories(parent: &SafeDir) -> Result<Vec<String>, FileFailure> {
    let entries = parent.entries(MAX_ENTRIES)?.0.into_iter();
    Ok(entries
        .filter(|entry| entry.kind == NodeKind::Directory)
        .filter_map(|entry| entry.name.into_string().ok())
        .collect())
}

// Former names, for crates that were written against them.
#[doc(hidden)]
pub use crate::sandbox::removal::OrphanedThread as LeftThread;

#[cfg(test)]
#[path = "removal_tests.rs"]
mod tests;
