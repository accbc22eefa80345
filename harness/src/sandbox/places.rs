//! Where a path is opened: beneath a root of the thread, in a folder that its user's conversations read, or in one that an administrator
//! shows.

use std::path::Path;
use std::sync::Arc;

use super::blocking_files::BlockingFiles;
use super::fault::{Fault, FileError};
use super::mounts::Mounts;
use super::safe_fs::SafeDir;
use super::shelf::{Shelf, Shelves};
use super::virtual_paths::{RelativePath, Root, VirtualPath};

/// Where a look into directories begins.
#[derive(Debug)]
pub(super) struct Start {
    /// The way from the path that was asked for; empty for that path itself.
    pub(super) way: RelativePath,
    /// The directory.
    pub(super) directory: SafeDir,
}

impl BlockingFiles {
    /// The same with the folders that a user's threads read.
    #[must_use]
    pub fn with_shelves(mut self, shelves: Option<(Arc<dyn Shelves>, String)>) -> Self {
        self.shelves = shelves;
        self
    }

    /// The same with the folders that an administrator shows.
    #[must_use]
    pub fn with_mounts(mut self, mounts: Mounts) -> Self {
        self.mounts = mounts;
        self
    }

    /// What can be read beside the thread's own files.
    ///
    /// # Errors
    /// As [`Shelves::of`].
    pub fn shelf(&self) -> Result<Shelf, Fault> {
        self.shelves
            .as_ref()
            .map_or_else(|| Ok(Shelf::default()), |(shelves, user)| shelves.of(user))
    }

    /// The directories to look into for what is beneath `path`; none for a root that nothing was written to yet. Above the folders
    /// of skills there are names and no directory: there the look begins in each of them.
    pub(super) fn starts(&self, path: &VirtualPath) -> Result<Vec<Start>, FileError> {
        let itself = |(start, way): (SafeDir, RelativePath)| {
            Ok(vec![Start {
                way: RelativePath::default(),
                directory: start.open_dir(&way)?,
            }])
        };
        match self.place(path) {
            Err(Fault::NotFound) if path.relative().is_empty() => Ok(Vec::new()),
            Err(Fault::IsDirectory) => self
                .shelf()
                .map(|shelf| self.open_all(&shelf, path.relative())),
            place => place.and_then(itself),
        }
        .map_err(|fault| fault.at(path))
    }

    /// The folders beneath a part of their names. One that vanishes meanwhile is not there.
    fn open_all(&self, shelf: &Shelf, path: &RelativePath) -> Vec<Start> {
        let open = |host: &Path| self.dirs.open_other(host).ok();
        shelf
            .beneath(path)
            .filter_map(|(folder, way)| {
                Some(Start {
                    way,
                    directory: open(&folder.host)?,
                })
            })
            .collect()
    }

    /// The directory that a path is opened from, and the way on from there. Where skills are, a path that is only a part of folders'
    /// names [is a directory](Fault::IsDirectory).
    pub(super) fn place(&self, path: &VirtualPath) -> Result<(SafeDir, RelativePath), Fault> {
        match path.root() {
            Root::Skills => self.shelved(path),
            Root::Mounts => self.mounted(path).map(|(start, way, _)| (start, way)),
            root => Ok((self.dirs.open(root)?, path.relative().clone())),
        }
    }

    /// The same to change something there. A root of the thread that is not there is made.
    pub(super) fn place_to_write(
        &self,
        path: &VirtualPath,
    ) -> Result<(SafeDir, RelativePath), Fault> {
        match path.root() {
            Root::Skills | Root::AcpWorkspace | Root::Mounts => self.place_to_remove(path),
            root => Ok((self.dirs.create(root)?, path.relative().clone())),
        }
    }

    /// The same to take something away: nothing is made.
    pub(super) fn place_to_remove(
        &self,
        path: &VirtualPath,
    ) -> Result<(SafeDir, RelativePath), Fault> {
        match path.root() {
            Root::Skills => Err(Fault::Unchangeable),
            Root::AcpWorkspace => Err(Fault::ReadOnly),
            Root::Mounts => match self.mounted(path)? {
                (_, _, true) => Err(Fault::ReadOnly),
                (start, way, false) => Ok((start, way)),
            },
            _ => self.place(path),
        }
    }

    fn shelved(&self, path: &VirtualPath) -> Result<(SafeDir, RelativePath), Fault> {
        let shelf = self.shelf()?;
        match shelf.find(path.relative()) {
            Some((folder, way)) => Ok((self.dirs.open_other(&folder.host)?, way)),
            None if shelf.beneath(path.relative()).next().is_some() => Err(Fault::IsDirectory),
            None => Err(Fault::NotFound),
        }
    }

    /// The mount that a path lies in, the way on from there, and whether it is only read.
    fn mounted(&self, path: &VirtualPath) -> Result<(SafeDir, RelativePath, bool), Fault> {
        let (mount, way) = self.mounts.find(path.relative()).ok_or(Fault::NotFound)?;
        Ok((self.dirs.open_other(&mount.host)?, way, mount.read_only))
    }
}
