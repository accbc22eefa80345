//! Recursive removal of a directory that an agent controls, of any depth, without following links.

use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::file_error::FileFailure;
use super::safe_fs::{NodeKind, SafeDir};
use super::virtual_paths::RelativePath;

/// Number of directory entries that are in memory at a time.
const BATCH: usize = 4096;

/// Bounds the removal if the tree grows while it is removed.
const MAX_PASSES: usize = 1_000_000;

/// Removes the directory `path` beneath `start` and its content. Returns `false` if there was none.
///
/// Links are removed, not followed. Nested directories are moved up into `path` and emptied there,
/// so a tree of any depth needs three handles and no recursion. Directories without owner
/// permissions are made accessible again.
///
/// # Errors
/// [`FileFailure::Busy`] if the tree grows as fast as it is removed, and system errors.
pub fn remove_tree(start: &SafeDir, path: &RelativePath) -> Result<bool, FileFailure> {
    let (parent, name) = path.split_last().ok_or(FileFailure::Permission)?;
    let (parent, tree) = match start.open_dir(&parent).and_then(|parent| {
        let tree = start.open_dir(path)?;
        Ok((parent, tree))
    }) {
        Err(FileFailure::NotFound) => return Ok(false),
        opened => opened?,
    };
    tree.restore_owner_access()?;
    let mut moved = 0;
    for _ in 0..MAX_PASSES {
        empty_one_level(&tree, &mut moved)?;
        match rustix::fs::unlinkat(&parent, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => return Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Err(FileFailure::Busy)
}

fn empty_one_level(tree: &SafeDir, moved: &mut u64) -> Result<(), FileFailure> {
    let (entries, _) = tree.entries(BATCH)?;
    for entry in entries {
        if entry.kind != NodeKind::Directory && unlink(tree, &entry.name, AtFlags::empty())? {
            continue;
        }
        if unlink(tree, &entry.name, AtFlags::REMOVEDIR)? {
            continue;
        }
        let directory = match tree.enter(&entry.name) {
            Err(FileFailure::NotFound | FileFailure::NotDirectory | FileFailure::Symlink) => {
                continue;
            }
            opened => opened?,
        };
        directory.restore_owner_access()?;
        move_contents_up(&directory, tree, moved)?;
        unlink(tree, &entry.name, AtFlags::REMOVEDIR)?;
    }
    Ok(())
}

/// Removes the files of `directory` and moves its subdirectories up into `tree`.
fn move_contents_up(
    directory: &SafeDir,
    tree: &SafeDir,
    moved: &mut u64,
) -> Result<(), FileFailure> {
    let (entries, _) = directory.entries(BATCH)?;
    for entry in entries {
        if entry.kind != NodeKind::Directory && unlink(directory, &entry.name, AtFlags::empty())? {
            continue;
        }
        if unlink(directory, &entry.name, AtFlags::REMOVEDIR)? {
            continue;
        }
        // Moving a directory to another parent changes its `..`, so it must be writable.
        match directory.enter(&entry.name) {
            Ok(inner) => inner.restore_owner_access()?,
            Err(FileFailure::NotFound | FileFailure::NotDirectory | FileFailure::Symlink) => {
                continue;
            }
            Err(fault) => return Err(fault),
        }
        loop {
            *moved += 1;
            let target = format!(".lifted-{moved}");
            match rustix::fs::renameat(directory, entry.name.as_c_str(), tree, target.as_str()) {
                Ok(()) | Err(Errno::NOENT) => break,
                // The name exists: try the next number.
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR | Errno::ISDIR)
                    if *moved < u64::MAX => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
    Ok(())
}

/// Removes a name. Returns `false` if it needs the other kind of removal or is not empty.
fn unlink(
    directory: &SafeDir,
    name: &std::ffi::CString,
    how: AtFlags,
) -> Result<bool, FileFailure> {
    match rustix::fs::unlinkat(directory, name.as_c_str(), how) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::ISDIR | Errno::NOTDIR | Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
        // Some systems report this when a directory is unlinked as a file.
        Err(Errno::PERM) if !how.contains(AtFlags::REMOVEDIR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
#[path = "remove_tree_tests.rs"]
mod tests;
