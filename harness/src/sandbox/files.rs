//! The file operations of one thread for async code.

use std::fs::{File, Metadata};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::blocking_files::{
    BlockingFiles, DirectoryItem, FileLimits, FileStat, Occurrences, WriteMode,
};
use super::fault::{Fault, FileError};
use super::incoming_file::IncomingFile;
use super::line_range::{LineRange, TextRead};
use super::listing::Listing;
use super::mounts::Mounts;
use super::path_locks::PathLocks;
use super::pending_file::Durability;
use super::removal::{self, LeftThread};
use super::safe_fs::Resolver;
use super::search::{Found, LineQuery, NamePattern};
use super::shelf::{Shelf, Shelves};
use super::thread_dirs::ThreadDirs;
use super::virtual_paths::{PathError, VirtualPath};
use crate::ids::ThreadId;
use crate::turns::Turns;

/// How many users search at once: what a search costs is for its pattern to say, and all files are read in the same threads.
const SEARCHES: usize = 4;
/// How long a search may wait for its turn.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// The files of every thread under one runtime home. A process has one of these.
#[derive(Debug, Clone)]
pub struct FileHome {
    home: Arc<Path>,
    resolver: Resolver,
    locks: Arc<PathLocks>,
    limits: FileLimits,
    shelves: Option<Arc<dyn Shelves>>,
    mounts: Mounts,
    searches: Arc<Turns>,
}

impl FileHome {
    /// The files under `home`, which is made when something is first written.
    pub fn new(home: impl Into<Arc<Path>>, limits: FileLimits) -> Self {
        Self::with_resolver(home, limits, Resolver::detect())
    }

    /// As [`new`](Self::new), with the resolver chosen by the caller.
    pub fn with_resolver(
        home: impl Into<Arc<Path>>,
        limits: FileLimits,
        resolver: Resolver,
    ) -> Self {
        let searches = Arc::new(Turns::new(SEARCHES, LONGEST_WAIT));
        Self {
            home: home.into(),
            resolver,
            locks: Arc::default(),
            limits,
            shelves: None,
            mounts: Mounts::default(),
            searches,
        }
    }

    /// The same, with folders that every thread of a user reads.
    #[must_use]
    pub fn with_shelves(self, shelves: Arc<dyn Shelves>) -> Self {
        Self {
            shelves: Some(shelves),
            ..self
        }
    }

    /// The same, with folders that an administrator shows to every thread.
    #[must_use]
    pub fn with_mounts(self, mounts: Mounts) -> Self {
        Self { mounts, ..self }
    }

    /// Reads the path of something that can be read: of the thread, of skills or in a mount.
    ///
    /// # Errors
    /// As [`VirtualPath::parse_readable`].
    pub fn readable(&self, raw: &str) -> Result<VirtualPath, PathError> {
        self.or_mounted(raw, VirtualPath::parse_readable(raw))
    }

    /// Reads the path of something that belongs to the thread or lies in a mount, which may be read-only.
    ///
    /// # Errors
    /// As [`VirtualPath::parse`].
    pub fn writable(&self, raw: &str) -> Result<VirtualPath, PathError> {
        self.or_mounted(raw, VirtualPath::parse(raw))
    }

    fn or_mounted(
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

    /// The runtime home on the host; never to be shown.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The files of one thread of one user. Touches no disk; every user id is fine.
    pub fn thread(&self, user_id: &str, thread: &ThreadId) -> ThreadFiles {
        let dirs = ThreadDirs::new(self.home.clone(), self.resolver, user_id, thread);
        let shelves = self
            .shelves
            .clone()
            .map(|shelves| (shelves, user_id.to_owned()));
        let blocking = BlockingFiles::new(dirs, self.locks.clone(), self.limits)
            .with_shelves(shelves)
            .with_mounts(self.mounts.clone());
        ThreadFiles {
            blocking: Arc::new(blocking),
            user: user_id.into(),
            searches: self.searches.clone(),
        }
    }

    /// Removes what former removals left aside, of all users, and gives the threads whose row was about to be removed when a process
    /// died: theirs is to be [removed](Self::remove_left) if the row is gone.
    ///
    /// # Errors
    /// When the home cannot be read.
    pub async fn sweep(&self) -> Result<Vec<LeftThread>, Fault> {
        let (home, resolver) = (self.home.clone(), self.resolver);
        off_the_runtime(move || removal::sweep(&home, resolver)).await
    }

    /// Removes what is left of such a thread.
    ///
    /// # Errors
    /// As [`ThreadDirs::remove`].
    pub async fn remove_left(&self, left: LeftThread) -> Result<bool, Fault> {
        off_the_runtime(move || left.remove()).await
    }
}

/// The files of one thread. Cheap to clone.
///
/// Operations run on the blocking pool. One that has begun runs to its end even when its future is
/// dropped, so a cancelled write is either whole or absent; searches alone stop then. See [`BlockingFiles`] for what each does.
#[derive(Debug, Clone)]
pub struct ThreadFiles {
    blocking: Arc<BlockingFiles>,
    user: Arc<str>,
    searches: Arc<Turns>,
}

impl ThreadFiles {
    /// The same files for code that may block.
    pub fn blocking(&self) -> &BlockingFiles {
        &self.blocking
    }

    /// See [`BlockingFiles::list`].
    ///
    /// # Errors
    /// As there.
    pub async fn list(&self, path: &VirtualPath, depth: usize) -> Result<Listing, FileError> {
        self.run(path, move |files, path| files.list(path, depth))
            .await
    }

    /// See [`BlockingFiles::read_dir`].
    ///
    /// # Errors
    /// As there.
    pub async fn read_dir(&self, path: &VirtualPath) -> Result<Vec<DirectoryItem>, FileError> {
        self.run(path, BlockingFiles::read_dir).await
    }

    /// See [`BlockingFiles::glob`].
    ///
    /// # Errors
    /// As there.
    pub async fn glob(
        &self,
        path: &VirtualPath,
        pattern: NamePattern,
        with_directories: bool,
        most: usize,
    ) -> Result<Found, FileError> {
        let stop = CancellationToken::new();
        let _stops_when_dropped = stop.clone().drop_guard();
        self.search(path, move |files, path| {
            files.glob(path, &pattern, with_directories, most, &stop)
        })
        .await
    }

    /// See [`BlockingFiles::grep`].
    ///
    /// # Errors
    /// As there.
    pub async fn grep(
        &self,
        path: &VirtualPath,
        query: LineQuery,
        most: usize,
    ) -> Result<Found, FileError> {
        let stop = CancellationToken::new();
        let _stops_when_dropped = stop.clone().drop_guard();
        self.search(path, move |files, path| {
            files.grep(path, &query, most, &stop)
        })
        .await
    }

    /// See [`BlockingFiles::read_text`].
    ///
    /// # Errors
    /// As there.
    pub async fn read_text(
        &self,
        path: &VirtualPath,
        range: LineRange,
    ) -> Result<TextRead, FileError> {
        self.run(path, move |files, path| files.read_text(path, range))
            .await
    }

    /// See [`BlockingFiles::write_text`].
    ///
    /// # Errors
    /// As there.
    pub async fn write_text(
        &self,
        path: &VirtualPath,
        content: String,
        mode: WriteMode,
    ) -> Result<(), FileError> {
        self.run(path, move |files, path| {
            files.write_text(path, &content, mode)
        })
        .await
    }

    /// See [`BlockingFiles::write_bytes`].
    ///
    /// # Errors
    /// As there.
    pub async fn write_bytes(
        &self,
        path: &VirtualPath,
        content: Bytes,
        durability: Durability,
    ) -> Result<(), FileError> {
        self.run(path, move |files, path| {
            files.write_bytes(path, &content, durability)
        })
        .await
    }

    /// See [`BlockingFiles::is_marked`].
    ///
    /// # Errors
    /// As there.
    pub async fn is_marked(&self, path: &VirtualPath, mark: String) -> Result<bool, FileError> {
        self.run(path, move |files, path| files.is_marked(path, &mark))
            .await
    }

    /// See [`BlockingFiles::write_marked`].
    ///
    /// # Errors
    /// As there.
    pub async fn write_marked(
        &self,
        path: &VirtualPath,
        mark: String,
        content: Bytes,
    ) -> Result<bool, FileError> {
        self.run(path, move |files, path| {
            files.write_marked(path, &mark, &content)
        })
        .await
    }

    /// See [`BlockingFiles::remove_marked`].
    ///
    /// # Errors
    /// As there.
    pub async fn remove_marked(&self, path: &VirtualPath, mark: String) -> Result<bool, FileError> {
        self.run(path, move |files, path| files.remove_marked(path, &mark))
            .await
    }

    /// Starts a file whose content arrives in pieces; see [`BlockingFiles::begin_write`].
    ///
    /// # Errors
    /// As there.
    pub async fn begin_write(&self, path: &VirtualPath) -> Result<IncomingFile, FileError> {
        let pending = self.run(path, BlockingFiles::begin_write).await?;
        Ok(IncomingFile::new(self.clone(), path.clone(), pending))
    }

    /// See [`BlockingFiles::replace`].
    ///
    /// # Errors
    /// As there.
    pub async fn replace(
        &self,
        path: &VirtualPath,
        old: String,
        new: String,
        which: Occurrences,
    ) -> Result<usize, FileError> {
        self.run(path, move |files, path| {
            files.replace(path, &old, &new, which)
        })
        .await
    }

    /// See [`BlockingFiles::replace_if`].
    ///
    /// # Errors
    /// As there.
    pub async fn replace_if(
        &self,
        path: &VirtualPath,
        content: String,
        durability: Durability,
        is_expected: impl FnOnce(&str) -> bool + Send + 'static,
    ) -> Result<bool, FileError> {
        self.run(path, move |files, path| {
            files.replace_if(path, &content, durability, is_expected)
        })
        .await
    }

    /// See [`BlockingFiles::stat`].
    ///
    /// # Errors
    /// As there.
    pub async fn stat(&self, path: &VirtualPath) -> Result<Option<FileStat>, FileError> {
        self.run(path, BlockingFiles::stat).await
    }

    /// Whether something is there that is not a link.
    ///
    /// # Errors
    /// As [`stat`](Self::stat).
    pub async fn exists(&self, path: &VirtualPath) -> Result<bool, FileError> {
        Ok(self.stat(path).await?.is_some())
    }

    /// See [`BlockingFiles::open_read`].
    ///
    /// # Errors
    /// As there.
    pub async fn open_read(&self, path: &VirtualPath) -> Result<(File, Metadata), FileError> {
        self.run(path, BlockingFiles::open_read).await
    }

    /// See [`BlockingFiles::read_bytes`].
    ///
    /// # Errors
    /// As there.
    pub async fn read_bytes(
        &self,
        path: &VirtualPath,
        max_bytes: u64,
    ) -> Result<Vec<u8>, FileError> {
        self.run(path, move |files, path| files.read_bytes(path, max_bytes))
            .await
    }

    /// See [`BlockingFiles::remove_file`].
    ///
    /// # Errors
    /// As there.
    pub async fn remove_file(&self, path: &VirtualPath) -> Result<bool, FileError> {
        self.run(path, BlockingFiles::remove_file).await
    }

    /// Removes everything that belongs to the thread; see [`ThreadDirs::remove`].
    ///
    /// # Errors
    /// As there.
    pub async fn remove_all(&self) -> Result<bool, Fault> {
        let files = self.blocking.clone();
        off_the_runtime(move || files.dirs().remove()).await
    }

    /// Notes that the thread's row is about to be removed; see [`removal`].
    ///
    /// # Errors
    /// What the system reports.
    pub async fn note_removal(&self) -> Result<(), Fault> {
        let files = self.blocking.clone();
        off_the_runtime(move || files.dirs().note_removal()).await
    }

    /// Takes the note back.
    ///
    /// # Errors
    /// What the system reports.
    pub async fn forget_removal(&self) -> Result<(), Fault> {
        let files = self.blocking.clone();
        off_the_runtime(move || files.dirs().forget_removal()).await
    }

    /// See [`BlockingFiles::shelf`].
    ///
    /// # Errors
    /// As there.
    pub async fn shelf(&self) -> Result<Shelf, Fault> {
        let files = self.blocking.clone();
        off_the_runtime(move || files.shelf()).await
    }

    /// See [`ThreadDirs::resolve_for_display`]. Touches no disk.
    ///
    /// # Errors
    /// As there.
    pub fn resolve_for_display(&self, raw: &str) -> Result<VirtualPath, PathError> {
        self.blocking.dirs().resolve_for_display(raw)
    }

    async fn search<Op>(&self, path: &VirtualPath, operation: Op) -> Result<Found, FileError>
    where
        Op: FnOnce(&BlockingFiles, &VirtualPath) -> Result<Found, FileError> + Send + 'static,
    {
        let (files, owned_path) = (self.blocking.clone(), path.clone());
        self.in_turn(move || Ok(operation(&files, &owned_path)))
            .await
            .map_err(|fault| fault.at(path))?
    }

    /// Runs what may take as long as somebody wants it to, when it is the user's turn. It keeps its turn until it is done, also when
    /// nobody waits for it any more.
    pub(crate) async fn in_turn<T, Op>(&self, operation: Op) -> Result<T, Fault>
    where
        T: Send + 'static,
        Op: FnOnce() -> Result<T, Fault> + Send + 'static,
    {
        let turn = self.searches.next(&self.user).await.ok_or(Fault::Crowded)?;
        off_the_runtime(move || {
            let _turn = turn;
            operation()
        })
        .await
    }

    pub(super) async fn run<T, Op>(&self, path: &VirtualPath, operation: Op) -> Result<T, FileError>
    where
        T: Send + 'static,
        Op: FnOnce(&BlockingFiles, &VirtualPath) -> Result<T, FileError> + Send + 'static,
    {
        let (files, owned_path) = (self.blocking.clone(), path.clone());
        off_the_runtime(move || Ok(operation(&files, &owned_path)))
            .await
            .map_err(|fault| fault.at(path))?
    }
}

/// Runs what takes long where nobody else waits for it.
pub(crate) async fn off_the_runtime<T, Op>(operation: Op) -> Result<T, Fault>
where
    T: Send + 'static,
    Op: FnOnce() -> Result<T, Fault> + Send + 'static,
{
    match tokio::task::spawn_blocking(operation).await {
        Ok(outcome) => outcome,
        Err(error) => {
            tracing::error!(%error, "a file operation broke off");
            Err(Fault::Aborted)
        }
    }
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
