//! Resolution of a virtual path to a directory handle: a root of the thread, a mounted skill, or an
//! administrator's mount.

use std::path::Path;
use std::sync::Arc;

use super::blocking_files::BlockingFiles;
use super::file_error::{FileError, FileFailure};
use super::mounts::Mounts;
use super::safe_fs::SafeDir;
use super::skill_mounts::{SkillMountSource, SkillMounts};
use super::virtual_paths::{RelativePath, Root, VirtualPath};

/// Starting point of a directory walk.
#[derive(Debug)]
pub(super) struct SearchStart {
    /// Path relative to the requested path; empty for the requested path itself.
    pub(super) relative: RelativePath,
    /// Handle of the directory.
    pub(super) directory: SafeDir,
}

impl BlockingFiles {
    /// Sets the source of skill folders, and the user id to query it with.
    #[must_use]
    pub fn with_skill_mounts(
        mut self,
        skill_mounts: Option<(Arc<dyn SkillMountSource>, String)>,
    ) -> Self {
        self.skill_mounts = skill_mounts;
        self
    }

    #[doc(hidden)]
    #[deprecated(note = "use `with_skill_mounts`")]
    #[must_use]
    pub fn with_shelves(self, shelves: Option<(Arc<dyn SkillMountSource>, String)>) -> Self {
        self.with_skill_mounts(shelves)
    }

    /// Sets the administrator's mounts.
    #[must_use]
    pub fn with_mounts(mut self, mounts: Mounts) -> Self {
        self.mounts = mounts;
        self
    }

    /// Returns the skill folders that the thread can read.
    ///
    /// # Errors
    /// As [`SkillMountSource::of`].
    pub fn skill_mounts(&self) -> Result<SkillMounts, FileFailure> {
        self.skill_mounts.as_ref().map_or_else(
            || Ok(SkillMounts::default()),
            |(skill_mounts, user)| skill_mounts.of(user),
        )
    }

    #[doc(hidden)]
    #[deprecated(note = "use `skill_mounts`")]
    pub fn shelf(&self) -> Result<SkillMounts, FileFailure> {
        self.skill_mounts()
    }

    /// Returns the directories to walk for the content of `path`; none for a root that was never
    /// written to. Parents of skill folders exist only as names, so the walk starts in each skill
    /// folder below.
    pub(super) fn search_starts(&self, path: &VirtualPath) -> Result<Vec<SearchStart>, FileError> {
        let itself = |(start, relative): (SafeDir, RelativePath)| {
            Ok(vec![SearchStart {
                relative: RelativePath::default(),
                directory: start.open_dir(&relative)?,
            }])
        };
        match self.resolve(path) {
            Err(FileFailure::NotFound) if path.relative().is_empty() => Ok(Vec::new()),
            Err(FileFailure::IsDirectory) => self
                .skill_mounts()
                .map(|skills| self.open_all(&skills, path.relative())),
            resolved => resolved.and_then(itself),
        }
        .map_err(|fault| fault.at(path))
    }

    /// Opens the skill folders below a path that is only a prefix of their names. Folders that were
    /// removed in the meantime are skipped.
    fn open_all(&self, skills: &SkillMounts, path: &RelativePath) -> Vec<SearchStart> {
        let open = |host: &Path| self.dirs.open_host_dir(host).ok();
        skills
            .beneath(path)
            .filter_map(|(folder, relative)| {
                Some(SearchStart {
                    relative,
                    directory: open(&folder.host)?,
                })
            })
            .collect()
    }

    /// Returns a directory handle and the remaining path. A path that is only a prefix of skill
    /// folder names fails with [`IsDirectory`](FileFailure::IsDirectory).
    pub(super) fn resolve(
        &self,
        path: &VirtualPath,
    ) -> Result<(SafeDir, RelativePath), FileFailure> {
        match path.root() {
            Root::Skills => self.resolve_skill(path),
            Root::Mounts => self
                .resolve_mount(path)
                .map(|(start, relative, _)| (start, relative)),
            root => Ok((self.dirs.open(root)?, path.relative().clone())),
        }
    }

    /// As [`resolve`](Self::resolve), for a write. Creates a missing root of the thread.
    pub(super) fn resolve_for_write(
        &self,
        path: &VirtualPath,
    ) -> Result<(SafeDir, RelativePath), FileFailure> {
        match path.root() {
            Root::Skills | Root::AcpWorkspace | Root::Mounts => self.resolve_for_removal(path),
            root => Ok((self.dirs.create(root)?, path.relative().clone())),
        }
    }

    /// As [`resolve`](Self::resolve), for a removal. Creates nothing.
    pub(super) fn resolve_for_removal(
        &self,
        path: &VirtualPath,
    ) -> Result<(SafeDir, RelativePath), FileFailure> {
        match path.root() {
            Root::Skills => Err(FileFailure::Unchangeable),
            Root::AcpWorkspace => Err(FileFailure::ReadOnly),
            Root::Mounts => match self.resolve_mount(path)? {
                (_, _, true) => Err(FileFailure::ReadOnly),
                (start, relative, false) => Ok((start, relative)),
            },
            _ => self.resolve(path),
        }
    }

    fn resolve_skill(&self, path: &VirtualPath) -> Result<(SafeDir, RelativePath), FileFailure> {
        let skills = self.skill_mounts()?;
        match skills.find(path.relative()) {
            Some((folder, relative)) => Ok((self.dirs.open_host_dir(&folder.host)?, relative)),
            None if skills.beneath(path.relative()).next().is_some() => {
                Err(FileFailure::IsDirectory)
            }
            None => Err(FileFailure::NotFound),
        }
    }

    /// Returns the mount that contains a path, the remaining path, and whether the mount is
    /// read-only.
    fn resolve_mount(
        &self,
        path: &VirtualPath,
    ) -> Result<(SafeDir, RelativePath, bool), FileFailure> {
        let (mount, relative) = self
            .mounts
            .find(path.relative())
            .ok_or(FileFailure::NotFound)?;
        Ok((
            self.dirs.open_host_dir(&mount.host)?,
            relative,
            mount.read_only,
        ))
    }
}
