//! The files of every thread under one runtime home.

use std::path::Path;
use std::sync::Arc;

use super::blocking_files::{BlockingFiles, FileLimits};
use super::blocking_task::run_blocking;
use super::changes::RunSnapshots;
use super::file_error::FileFailure;
use super::mounts::Mounts;
use super::path_locks::PathLocks;
use super::removal::{self, OrphanedThread};
use super::safe_fs::Resolver;
use super::skill_mounts::SkillMountSource;
use super::thread_dirs::{ThreadDirs, UserDirName};
use super::virtual_paths::{PathError, VirtualPath};
use deerflow_core::fair_permits::FairPermits;
use deerflow_core::ids::ThreadId;

pub use super::thread_files::ThreadFiles;

/// Maximum number of concurrent searches, one per user: the cost of a search depends on its
/// pattern, and all file operations share one thread pool.
const MAX_CONCURRENT_SEARCHES: usize = 4;

/// Files of every thread under one runtime home. One instance per process.
#[derive(Debug, Clone)]
pub struct FileHome {
    home: Arc<Path>,
    resolver: Resolver,
    locks: Arc<PathLocks>,
    limits: FileLimits,
    skill_mounts: Option<Arc<dyn SkillMountSource>>,
    mounts: Mounts,
    searches: Arc<FairPermits>,
    snapshots: RunSnapshots,
}

impl FileHome {
    /// Creates access to the files under `home`. The directory is created by the first write.
    pub fn new(home: impl Into<Arc<Path>>, limits: FileLimits) -> Self {
        Self::with_resolver(home, limits, Resolver::detect())
    }

    /// As [`new`](Self::new), with an explicit resolver.
    pub fn with_resolver(
        home: impl Into<Arc<Path>>,
        limits: FileLimits,
        resolver: Resolver,
    ) -> Self {
        let searches = FairPermits::limited_per_user("file_searches", MAX_CONCURRENT_SEARCHES, 1);
        Self {
            home: home.into(),
            resolver,
            locks: Arc::default(),
            limits,
            skill_mounts: None,
            mounts: Mounts::default(),
            searches: Arc::new(searches),
            snapshots: RunSnapshots::default(),
        }
    }

    /// Adds the source of the skill folders that every thread of a user can read.
    #[must_use]
    pub fn with_skill_mounts(self, skill_mounts: Arc<dyn SkillMountSource>) -> Self {
        Self {
            skill_mounts: Some(skill_mounts),
            ..self
        }
    }

    #[doc(hidden)]
    #[deprecated(note = "use `with_skill_mounts`")]
    #[must_use]
    pub fn with_shelves(self, shelves: Arc<dyn SkillMountSource>) -> Self {
        self.with_skill_mounts(shelves)
    }

    /// Adds folders that the administrator mounts into every thread.
    #[must_use]
    pub fn with_mounts(self, mounts: Mounts) -> Self {
        Self { mounts, ..self }
    }

    /// Parses a path for reading: of the thread, of a skill or in a mount.
    ///
    /// # Errors
    /// As [`VirtualPath::parse_readable`].
    pub fn readable(&self, raw: &str) -> Result<VirtualPath, PathError> {
        self.or_in_mount(raw, VirtualPath::parse_readable(raw))
    }

    /// Parses a path of the thread or of a mount. The mount may be read-only; the write then fails.
    ///
    /// # Errors
    /// As [`VirtualPath::parse`].
    pub fn writable(&self, raw: &str) -> Result<VirtualPath, PathError> {
        self.or_in_mount(raw, VirtualPath::parse(raw))
    }

    fn or_in_mount(
        &self,
        raw: &str,
        path: Result<VirtualPath, PathError>,
    ) -> Result<VirtualPath, PathError> {
        let Err(refusal @ PathError::OutsideRoots { .. }) = path else {
            return path;
        };
        let mounted = VirtualPath::parse_mounted(raw)
            .ok()
            .filter(|path| self.mounts.find(path.relative()).is_some());
        mounted.ok_or(refusal)
    }

    /// Runtime home on the host. Must never appear in output.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Returns the snapshots of active runs, from which their changes are found.
    pub fn snapshots(&self) -> &RunSnapshots {
        &self.snapshots
    }

    /// Returns the files of one thread of one user. Does not touch the disk; any user id is
    /// accepted.
    pub fn thread(&self, user_id: &str, thread: &ThreadId) -> ThreadFiles {
        let dirs = ThreadDirs::new(self.home.clone(), self.resolver, user_id, thread);
        let skill_mounts = self
            .skill_mounts
            .clone()
            .map(|skill_mounts| (skill_mounts, user_id.to_owned()));
        let blocking = BlockingFiles::new(dirs, self.locks.clone(), self.limits)
            .with_skill_mounts(skill_mounts)
            .with_mounts(self.mounts.clone());
        ThreadFiles::new(blocking, user_id, self.searches.clone())
    }

    /// Deletes the leftovers of earlier removals of all users. Returns the threads that were being
    /// removed when a process died. The caller [removes](Self::remove_left) the files of those that
    /// have no database row.
    ///
    /// # Errors
    /// If the home cannot be read.
    pub async fn sweep(&self) -> Result<Vec<OrphanedThread>, FileFailure> {
        let (home, resolver) = (self.home.clone(), self.resolver);
        run_blocking(move || removal::sweep(&home, resolver)).await
    }

    /// Removes the folder of a user with the files of all threads, agents and skills. Returns
    /// `false` if there was none. A repetition removes what an interrupted call did not.
    ///
    /// # Errors
    /// As [`ThreadDirs::remove`].
    pub async fn delete_user(&self, user_id: &str) -> Result<bool, FileFailure> {
        let (home, resolver) = (self.home.clone(), self.resolver);
        let name = UserDirName::from_user_id(user_id);
        run_blocking(move || removal::remove_user(&home, resolver, &name)).await
    }

    /// Removes the remaining files of an orphaned thread.
    ///
    /// # Errors
    /// As [`ThreadDirs::remove`].
    pub async fn remove_left(&self, orphan: OrphanedThread) -> Result<bool, FileFailure> {
        run_blocking(move || orphan.remove()).await
    }
}
