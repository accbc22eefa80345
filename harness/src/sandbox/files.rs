//! The file operations of one thread for async code.

use std::fs::{File, Metadata};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use super::blocking_files::{BlockingFiles, DirectoryItem, FileLimits, FileStat, Occurrences, WriteMode};
use super::fault::{Fault, FileError};
use super::line_range::{LineRange, TextRead};
use super::listing::Listing;
use super::path_locks::PathLocks;
use super::pending_file::{Durability, PendingFile};
use super::safe_fs::Resolver;
use super::search::{Found, LineQuery, NamePattern};
use super::thread_dirs::ThreadDirs;
use super::virtual_paths::{PathError, VirtualPath};
use crate::ids::ThreadId;

/// The files of every thread under one runtime home. A process has one of these.
#[derive(Debug, Clone)]
pub struct FileHome {
    home: Arc<Path>,
    resolver: Resolver,
    locks: Arc<PathLocks>,
    limits: FileLimits,
}

impl FileHome {
    /// The files under `home`, which is made when something is first written.
    pub fn new(home: impl Into<Arc<Path>>, limits: FileLimits) -> Self {
        Self::with_resolver(home, limits, Resolver::detect())
    }

    /// As [`new`](Self::new), with the resolver chosen by the caller.
    pub fn with_resolver(home: impl Into<Arc<Path>>, limits: FileLimits, resolver: Resolver) -> Self {
        Self { home: home.into(), resolver, locks: Arc::default(), limits }
    }

    /// The runtime home on the host; never to be shown.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The files of one thread of one user. Touches no disk; every user id is fine.
    pub fn thread(&self, user_id: &str, thread: &ThreadId) -> ThreadFiles {
        let dirs = ThreadDirs::new(self.home.clone(), self.resolver, user_id, thread);
        let blocking = BlockingFiles::new(dirs, self.locks.clone(), self.limits);
        ThreadFiles { blocking: Arc::new(blocking) }
    }
}

/// The files of one thread. Cheap to clone.
///
/// Operations run on the blocking pool. One that has begun runs to its end even when its future is
/// dropped, so a cancelled write is either whole or absent; see [`BlockingFiles`] for what each does.
#[derive(Debug, Clone)]
pub struct ThreadFiles {
    blocking: Arc<BlockingFiles>,
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
        self.run(path, move |files, path| files.list(path, depth)).await
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
    pub async fn glob(&self, path: &VirtualPath, pattern: NamePattern, with_directories: bool, most: usize) -> Result<Found, FileError> {
        self.run(path, move |files, path| files.glob(path, &pattern, with_directories, most)).await
    }

    /// See [`BlockingFiles::grep`].
    ///
    /// # Errors
    /// As there.
    pub async fn grep(&self, path: &VirtualPath, query: LineQuery, most: usize) -> Result<Found, FileError> {
        self.run(path, move |files, path| files.grep(path, &query, most)).await
    }

    /// See [`BlockingFiles::read_text`].
    ///
    /// # Errors
    /// As there.
    pub async fn read_text(&self, path: &VirtualPath, range: LineRange) -> Result<TextRead, FileError> {
        self.run(path, move |files, path| files.read_text(path, range)).await
    }

    /// See [`BlockingFiles::write_text`].
    ///
    /// # Errors
    /// As there.
    pub async fn write_text(&self, path: &VirtualPath, content: String, mode: WriteMode) -> Result<(), FileError> {
        self.run(path, move |files, path| files.write_text(path, &content, mode)).await
    }

    /// See [`BlockingFiles::write_bytes`].
    ///
    /// # Errors
    /// As there.
    pub async fn write_bytes(&self, path: &VirtualPath, content: Bytes, durability: Durability) -> Result<(), FileError> {
        self.run(path, move |files, path| files.write_bytes(path, &content, durability)).await
    }

    /// Starts a file whose content arrives in pieces; see [`BlockingFiles::begin_write`].
    ///
    /// # Errors
    /// As there.
    pub async fn begin_write(&self, path: &VirtualPath) -> Result<IncomingFile, FileError> {
        let pending = self.run(path, BlockingFiles::begin_write).await?;
        Ok(IncomingFile { files: self.clone(), path: path.clone(), pending, written: 0 })
    }

    /// See [`BlockingFiles::replace`].
    ///
    /// # Errors
    /// As there.
    pub async fn replace(&self, path: &VirtualPath, old: String, new: String, which: Occurrences) -> Result<usize, FileError> {
        self.run(path, move |files, path| files.replace(path, &old, &new, which)).await
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
        self.run(path, move |files, path| files.replace_if(path, &content, durability, is_expected)).await
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
    pub async fn read_bytes(&self, path: &VirtualPath, max_bytes: u64) -> Result<Vec<u8>, FileError> {
        self.run(path, move |files, path| files.read_bytes(path, max_bytes)).await
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

    /// See [`ThreadDirs::resolve_for_display`]. Touches no disk.
    ///
    /// # Errors
    /// As there.
    pub fn resolve_for_display(&self, raw: &str) -> Result<VirtualPath, PathError> {
        self.blocking.dirs().resolve_for_display(raw)
    }

    async fn run<T, Op>(&self, path: &VirtualPath, operation: Op) -> Result<T, FileError>
    where
        T: Send + 'static,
        Op: FnOnce(&BlockingFiles, &VirtualPath) -> Result<T, FileError> + Send + 'static,
    {
        let (files, owned_path) = (self.blocking.clone(), path.clone());
        off_the_runtime(move || Ok(operation(&files, &owned_path))).await.map_err(|fault| fault.at(path))?
    }
}

/// A file arriving in pieces. It appears under its name on [`finish`](Self::finish) and not before;
/// dropped earlier, it leaves nothing behind.
#[derive(Debug)]
pub struct IncomingFile {
    files: ThreadFiles,
    path: VirtualPath,
    pending: PendingFile,
    written: u64,
}

impl IncomingFile {
    /// Adds a piece and gives the file back. An error, or a dropped future, ends the file.
    ///
    /// # Errors
    /// [`Fault::NoSpace`] and what else the system reports.
    pub async fn write(self, piece: Bytes) -> Result<Self, FileError> {
        let Self { files, path, mut pending, written } = self;
        let length = piece.len() as u64;
        let pending = off_the_runtime(move || pending.write(&piece).map(|()| pending)).await.map_err(|fault| fault.at(&path))?;
        Ok(Self { files, path, pending, written: written + length })
    }

    /// Where it will be.
    pub fn path(&self) -> &VirtualPath {
        &self.path
    }

    /// How many bytes have arrived.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Puts the file under its name and says how long it is.
    ///
    /// # Errors
    /// As [`PendingFile::commit`].
    pub async fn finish(self, durability: Durability) -> Result<u64, FileError> {
        let Self { files, path, pending, written } = self;
        files.run(&path, move |files, path| files.commit(path, pending, durability)).await.map(|()| written)
    }
}

async fn off_the_runtime<T, Op>(operation: Op) -> Result<T, Fault>
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
