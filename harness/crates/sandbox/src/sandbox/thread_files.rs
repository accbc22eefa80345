//! The file operations of one thread for async code.

use std::fs::{File, Metadata};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::blocking_files::{BlockingFiles, DirectoryItem, FileStat, Occurrences, WriteMode};
use super::blocking_task::run_blocking;
use super::file_error::{FileError, FileFailure};
use super::line_range::{LineRange, TextRead};
use super::listing::Listing;
use super::pending_file::Durability;
use super::search::{LineQuery, NamePattern, SearchResults};
use super::skill_mounts::SkillMounts;
use super::virtual_paths::{PathError, VirtualPath};
use deerflow_core::fair_permits::FairPermits;

/// Maximum time that a search waits for its permit.
const SEARCH_QUEUE_TIMEOUT: Duration = Duration::from_secs(20);

/// Files of one thread. Cheap to clone.
///
/// Operations run on the blocking thread pool. A started operation completes even if its future is
/// dropped, so a cancelled write is either complete or absent; only searches are cancelled. See
/// [`BlockingFiles`] for each operation.
#[derive(Debug, Clone)]
pub struct ThreadFiles {
    blocking: Arc<BlockingFiles>,
    user: Arc<str>,
    searches: Arc<FairPermits>,
}

impl ThreadFiles {
    pub(super) fn new(blocking: BlockingFiles, user: &str, searches: Arc<FairPermits>) -> Self {
        Self {
            blocking: Arc::new(blocking),
            user: user.into(),
            searches,
        }
    }

    /// Returns the same files for blocking code.
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
        max_rows: usize,
    ) -> Result<SearchResults, FileError> {
        let stop = CancellationToken::new();
        let _cancel_on_drop = stop.clone().drop_guard();
        self.search(path, move |files, path| {
            files.glob(path, &pattern, with_directories, max_rows, &stop)
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
        max_rows: usize,
    ) -> Result<SearchResults, FileError> {
        let stop = CancellationToken::new();
        let _cancel_on_drop = stop.clone().drop_guard();
        self.search(path, move |files, path| {
            files.grep(path, &query, max_rows, &stop)
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

    /// Reports whether `path` exists. A symbolic link is an error.
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

    /// Removes all files of the thread; see `ThreadDirs::remove`.
    ///
    /// # Errors
    /// As there.
    pub async fn remove_all(&self) -> Result<bool, FileFailure> {
        let files = self.blocking.clone();
        run_blocking(move || files.dirs().remove()).await
    }

    /// Creates the marker that the thread's row is about to be removed; see
    /// [`removal`](super::removal).
    ///
    /// # Errors
    /// System errors.
    pub async fn note_removal(&self) -> Result<(), FileFailure> {
        let files = self.blocking.clone();
        run_blocking(move || files.dirs().note_removal()).await
    }

    /// Removes the marker.
    ///
    /// # Errors
    /// System errors.
    pub async fn forget_removal(&self) -> Result<(), FileFailure> {
        let files = self.blocking.clone();
        run_blocking(move || files.dirs().forget_removal()).await
    }

    /// See [`BlockingFiles::skill_mounts`].
    ///
    /// # Errors
    /// As there.
    pub async fn skill_mounts(&self) -> Result<SkillMounts, FileFailure> {
        let files = self.blocking.clone();
        run_blocking(move || files.skill_mounts()).await
    }

    #[doc(hidden)]
    #[deprecated(note = "use `skill_mounts`")]
    pub async fn shelf(&self) -> Result<SkillMounts, FileFailure> {
        self.skill_mounts().await
    }

    /// See `ThreadDirs::resolve_for_display`. Touches no disk.
    ///
    /// # Errors
    /// As there.
    pub fn resolve_for_display(&self, raw: &str) -> Result<VirtualPath, PathError> {
        self.blocking.dirs().resolve_for_display(raw)
    }

    async fn search<Op>(
        &self,
        path: &VirtualPath,
        operation: Op,
    ) -> Result<SearchResults, FileError>
    where
        Op: FnOnce(&BlockingFiles, &VirtualPath) -> Result<SearchResults, FileError>
            + Send
            + 'static,
    {
        let (files, owned_path) = (self.blocking.clone(), path.clone());
        self.run_limited(move || Ok(operation(&files, &owned_path)))
            .await
            .map_err(|fault| fault.at(path))?
    }

    /// Runs an operation of unbounded duration when the user gets a permit. The permit is released
    /// when the operation ends, even if the caller is dropped earlier.
    ///
    /// # Errors
    /// [`FileFailure::Crowded`] on timeout, and the error of the operation.
    pub async fn run_limited<T, Op>(&self, operation: Op) -> Result<T, FileFailure>
    where
        T: Send + 'static,
        Op: FnOnce() -> Result<T, FileFailure> + Send + 'static,
    {
        let permit = self
            .searches
            .acquire_within(&self.user, SEARCH_QUEUE_TIMEOUT)
            .await
            .ok_or(FileFailure::Crowded)?;
        run_blocking(move || {
            let _permit = permit;
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
        run_blocking(move || Ok(operation(&files, &owned_path)))
            .await
            .map_err(|fault| fault.at(path))?
    }
}

#[cfg(test)]
#[path = "thread_files_tests.rs"]
mod tests;
