//! Removing what belongs to a thread, and what a process that died left of a removal.
//!
//! A folder is first moved aside, as `.removing-{thread}.{number}`, so a thread of the same id may start anew at once; whatever has
//! such a name is rubbish. Between the end of a thread's row and that move a process may die too: who is about to remove the row notes
//! it first, as `.removed-{thread}`, so that nobody has to guess which folders without a row are rubbish.

use std::path::Path;
use std::sync::Arc;

use rustix::fs::{AtFlags, OFlags};
use rustix::io::Errno;

use super::fault::Fault;
use super::remove_tree::remove_tree;
use super::safe_fs::{Entry, NEW_FILE, NodeKind, Resolver, SafeDir};
use super::thread_dirs::ThreadDirs;
use super::virtual_paths::RelativePath;
use crate::ids::ThreadId;

const ASIDE: &str = ".removing-";
const NOTE: &str = ".removed-";
/// Names that are tried for one folder.
const MOST_ASIDE: usize = 1_000;
/// Names of one folder that one look takes in.
const MOST_ENTRIES: usize = 1_000_000;

/// A thread whose row was about to be removed, and whose folder may still be there.
#[derive(Debug, Clone)]
pub struct LeftThread {
    /// Its id.
    pub thread: ThreadId,
    dirs: ThreadDirs,
}

impl LeftThread {
    /// Removes what is left of it. May block on the disk.
    ///
    /// # Errors
    /// As [`ThreadDirs::remove`].
    pub fn remove(&self) -> Result<bool, Fault> {
        self.dirs.remove()
    }
}

impl ThreadDirs {
    /// Notes that the thread's row is about to be removed.
    ///
    /// # Errors
    /// What the system reports.
    pub fn note_removal(&self) -> Result<(), Fault> {
        let Some((threads, thread)) = self.siblings()? else {
            return Ok(());
        };
        if threads
            .stat_name(thread.as_str())
            .is_err_and(|errno| errno == Errno::NOENT)
        {
            return Ok(());
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&threads, format!("{NOTE}{thread}"), flags, NEW_FILE)?;
        Ok(())
    }

    /// Takes the note back: the row stays.
    ///
    /// # Errors
    /// What the system reports.
    pub fn forget_removal(&self) -> Result<(), Fault> {
        let Some((threads, thread)) = self.siblings()? else {
            return Ok(());
        };
        match rustix::fs::unlinkat(&threads, format!("{NOTE}{thread}"), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Removes everything that belongs to the thread. `false` when there was nothing.
    ///
    /// # Errors
    /// See [`remove_tree`]. What is left then lies aside and is not the thread's any more; `sweep` tries again.
    pub fn remove(&self) -> Result<bool, Fault> {
        let Some((threads, thread)) = self.siblings()? else {
            return Ok(false);
        };
        let mut removed = false;
        let mut failed = None;
        for number in 0..MOST_ASIDE {
            let aside = format!("{ASIDE}{thread}.{number}");
            let is_taken =
                match rustix::fs::renameat(&threads, thread.as_str(), &threads, aside.as_str()) {
                    Ok(()) | Err(Errno::NOENT) => false,
                    // A former removal left it.
                    Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => true,
                    Err(errno) => return Err(errno.into()),
                };
            match remove_tree(&threads, &RelativePath::of_plain_names(&[&aside])) {
                Ok(found) => removed |= found,
                Err(fault) => failed = Some(fault),
            }
            if !is_taken {
                break;
            }
        }
        self.forget_removal()?;
        failed.map_or(Ok(removed), Err)
    }

    /// The folder that the thread's lies in, if it is there, and the thread's name in it.
    fn siblings(&self) -> Result<Option<(SafeDir, String)>, Fault> {
        let Some((threads, thread)) = self.thread.split_last() else {
            return Ok(None);
        };
        match SafeDir::open_trusted(&self.home, self.resolver)
            .and_then(|home| home.open_dir(&threads))
        {
            Err(Fault::NotFound) => Ok(None),
            opened => Ok(Some((opened?, thread.to_owned()))),
        }
    }
}

/// Removes what lies aside in the folders of all users, and says whose row was about to be removed. May block on the disk.
///
/// # Errors
/// When the folders of users cannot be read. One that cannot be removed is told in the log.
pub(super) fn sweep(home: &Arc<Path>, resolver: Resolver) -> Result<Vec<LeftThread>, Fault> {
    let users = RelativePath::of_plain_names(&["users"]);
    let users = match SafeDir::open_trusted(home, resolver).and_then(|home| home.open_dir(&users)) {
        Err(Fault::NotFound) => return Ok(Vec::new()),
        opened => opened?,
    };
    let mut left = Vec::new();
    for user in directories(&users)? {
        let Ok(path) = RelativePath::parse(&format!("{user}/threads")) else {
            continue;
        };
        let swept = users
            .open_dir(&path)
            .and_then(|threads| sweep_user(&threads));
        match swept {
            Ok(noted) => left.extend(noted.into_iter().map(|thread| {
                let dirs = ThreadDirs::of_user_dir(Arc::clone(home), resolver, &user, &thread);
                LeftThread { thread, dirs }
            })),
            Err(Fault::NotFound) => {}
            Err(error) => {
                tracing::error!(%error, "the folders of a user's threads cannot be looked at")
            }
        }
    }
    Ok(left)
}

/// Removes what lies aside in one user's folder; the threads that are noted.
fn sweep_user(threads: &SafeDir) -> Result<Vec<ThreadId>, Fault> {
    let mut noted = Vec::new();
    for Entry { name, kind } in threads.entries(MOST_ENTRIES)?.0 {
        let Ok(name) = name.into_string() else {
            continue;
        };
        if let Some(thread) = name.strip_prefix(NOTE) {
            noted.extend(ThreadId::parse(thread));
        } else if name.starts_with(ASIDE)
            && kind == NodeKind::Directory
            && let Ok(path) = RelativePath::parse(&name)
            && let Err(error) = remove_tree(threads, &path)
        {
            tracing::error!(%error, name, "files of a deleted thread are left behind");
        }
    }
    Ok(noted)
}

fn directories(parent: &SafeDir) -> Result<Vec<String>, Fault> {
    let entries = parent.entries(MOST_ENTRIES)?.0.into_iter();
    Ok(entries
        .filter(|entry| entry.kind == NodeKind::Directory)
        .filter_map(|entry| entry.name.into_string().ok())
        .collect())
}

#[cfg(test)]
#[path = "removal_tests.rs"]
mod tests;
