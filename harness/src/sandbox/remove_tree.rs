//! Removing a directory with all that an agent put into it, however deep, without following anything.

use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::fault::Fault;
use super::safe_fs::{NodeKind, SafeDir};
use super::virtual_paths::RelativePath;

/// How many entries of one directory are held in memory at a time.
const BATCH: usize = 4096;

/// An end even when somebody keeps adding to the tree while it is removed.
const MAX_PASSES: usize = 1_000_000;

/// Removes the directory `path` beneath `start` and everything in it. `false` when there was none.
///
/// Links are removed themselves. Nested directories are lifted up into `path` and emptied there, so a
/// tree of any depth needs three handles and no recursion. Directories that a command closed to their
/// owner are opened again.
///
/// # Errors
/// [`Fault::Busy`] when the tree grows as fast as it is removed, and what the system reports.
pub fn remove_tree(start: &SafeDir, path: &RelativePath) -> Result<bool, Fault> {
    let (parent, name) = path.split_last().ok_or(Fault::Permission)?;
    let (parent, tree) = match start.open_dir(&parent).and_then(|parent| {
        let tree = start.open_dir(path)?;
        Ok((parent, tree))
    }) {
        Err(Fault::NotFound) => return Ok(false),
        opened => opened?,
    };
    tree.regain()?;
    let mut lifted = 0;
    for _ in 0..MAX_PASSES {
        empty_one_level(&tree, &mut lifted)?;
        match rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => return Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Err(Fault::Busy)
}

fn empty_one_level(tree: &SafeDir, lifted: &mut u64) -> Result<(), Fault> {
    let (entries, _) = tree.entries(BATCH)?;
    for entry in entries {
        if entry.kind != NodeKind::Directory && unlink(tree, &entry.name, AtFlags::empty())? {
            continue;
        }
        if unlink(tree, &entry.name, AtFlags::REMOVEDIR)? {
            continue;
        }
        let directory = match tree.enter(&entry.name) {
            Err(Fault::NotFound | Fault::NotDirectory | Fault::Symlink) => continue,
            opened => opened?,
        };
        directory.regain()?;
        lift_contents(&directory, tree, lifted)?;
        unlink(tree, &entry.name, AtFlags::REMOVEDIR)?;
    }
    Ok(())
}

/// Unlinks the files of `directory` and moves its directories up into `tree`.
fn lift_contents(directory: &SafeDir, tree: &SafeDir, lifted: &mut u64) -> Result<(), Fault> {
    let (entries, _) = directory.entries(BATCH)?;
    for entry in entries {
        if entry.kind != NodeKind::Directory && unlink(directory, &entry.name, AtFlags::empty())? {
            continue;
        }
        if unlink(directory, &entry.name, AtFlags::REMOVEDIR)? {
            continue;
        }
        // What is moved to another directory must be writable itself: its `..` changes.
        match directory.enter(&entry.name) {
            Ok(inner) => inner.regain()?,
            Err(Fault::NotFound | Fault::NotDirectory | Fault::Symlink) => continue,
            Err(fault) => return Err(fault),
        }
        loop {
            *lifted += 1;
            let place = format!(".lifted-{lifted}");
            match rustix::fs::renameat(directory, entry.name.as_c_str(), tree, place.as_str()) {
                Ok(()) | Err(Errno::NOENT) => break,
                // Something has that name already: the next number may be free.
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR | Errno::ISDIR)
                    if *lifted < u64::MAX => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
    Ok(())
}

/// Whether the name is gone; `false` when it needs the other kind of removal or is not empty.
fn unlink(directory: &SafeDir, name: &std::ffi::CString, how: AtFlags) -> Result<bool, Fault> {
    match rustix::fs::unlinkat(directory, name.as_c_str(), how) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::ISDIR | Errno::NOTDIR | Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
        // Some systems say so of a directory that was to be removed as a file.
        Err(Errno::PERM) if !how.contains(AtFlags::REMOVEDIR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
#[path = "remove_tree_tests.rs"]
mod tests;
