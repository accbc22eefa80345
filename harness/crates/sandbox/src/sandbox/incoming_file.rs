//! A file whose content arrives in chunks, for async code.

use bytes::Bytes;

use super::blocking_files::BlockingFiles;
use super::blocking_task::run_blocking;
use super::file_error::FileError;
use super::pending_file::{Durability, PendingFile};
use super::thread_files::ThreadFiles;
use super::virtual_paths::VirtualPath;

/// File whose content arrives in chunks. It becomes visible under its name on
/// [`finish`](Self::finish); if it is dropped earlier, it is deleted.
#[derive(Debug)]
pub struct IncomingFile {
    files: ThreadFiles,
    path: VirtualPath,
    pending: PendingFile,
    written: u64,
}

impl ThreadFiles {
    /// Starts a file whose content arrives in chunks; see [`BlockingFiles::begin_write`].
    ///
    /// # Errors
    /// As there.
    pub async fn begin_write(&self, path: &VirtualPath) -> Result<IncomingFile, FileError> {
        let pending = self.run(path, BlockingFiles::begin_write).await?;
        Ok(IncomingFile::new(self.clone(), path.clone(), pending))
    }
}

impl IncomingFile {
    fn new(files: ThreadFiles, path: VirtualPath, pending: PendingFile) -> Self {
        Self {
            files,
            path,
            pending,
            written: 0,
        }
    }

    /// Appends a chunk and returns the file. On an error, or if the future is dropped, the file is
    /// deleted.
    ///
    /// # Errors
    /// [`FileFailure::NoSpace`](super::FileFailure::NoSpace) and other system errors.
    pub async fn write(self, piece: Bytes) -> Result<Self, FileError> {
        let Self {
            files,
            path,
            mut pending,
            written,
        } = self;
        let length = piece.len() as u64;
        let pending = run_blocking(move || pending.write(&piece).map(|()| pending))
            .await
            .map_err(|fault| fault.at(&path))?;
        Ok(Self {
            files,
            path,
            pending,
            written: written + length,
        })
    }

    /// Final path of the file.
    pub fn path(&self) -> &VirtualPath {
        &self.path
    }

    /// Number of bytes written so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Syncs the file to the disk and checks that its target can be replaced, so that
    /// [`finish`](Self::finish) only has to rename it.
    ///
    /// # Errors
    /// As [`PendingFile::settle`].
    pub async fn settle(self) -> Result<Self, FileError> {
        let Self {
            files,
            path,
            pending,
            written,
        } = self;
        let pending = run_blocking(move || pending.settle().map(|()| pending))
            .await
            .map_err(|fault| fault.at(&path))?;
        Ok(Self {
            files,
            path,
            pending,
            written,
        })
    }

    /// Moves the file to its final name and returns its length in bytes.
    ///
    /// # Errors
    /// As [`PendingFile::commit`].
    pub async fn finish(self, durability: Durability) -> Result<u64, FileError> {
        let Self {
            files,
            path,
            pending,
            written,
        } = self;
        files
            .run(&path, move |files, path| {
                files.commit(path, pending, durability)
            })
            .await
            .map(|()| written)
    }
}
