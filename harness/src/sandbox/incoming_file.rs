//! A file whose content arrives in pieces, for async code.

use bytes::Bytes;

use super::fault::FileError;
use super::files::{ThreadFiles, off_the_runtime};
use super::pending_file::{Durability, PendingFile};
use super::virtual_paths::VirtualPath;

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
    pub(super) fn new(files: ThreadFiles, path: VirtualPath, pending: PendingFile) -> Self {
        Self {
            files,
            path,
            pending,
            written: 0,
        }
    }

    /// Adds a piece and gives the file back. An error, or a dropped future, ends the file.
    ///
    /// # Errors
    /// [`Fault::NoSpace`](super::Fault::NoSpace) and what else the system reports.
    pub async fn write(self, piece: Bytes) -> Result<Self, FileError> {
        let Self {
            files,
            path,
            mut pending,
            written,
        } = self;
        let length = piece.len() as u64;
        let pending = off_the_runtime(move || pending.write(&piece).map(|()| pending))
            .await
            .map_err(|fault| fault.at(&path))?;
        Ok(Self {
            files,
            path,
            pending,
            written: written + length,
        })
    }

    /// Where it will be.
    pub fn path(&self) -> &VirtualPath {
        &self.path
    }

    /// How many bytes have arrived.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Has the disk keep the file and looks whether it can appear, so that [`finish`](Self::finish) has next to nothing to fail at.
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
        let pending = off_the_runtime(move || pending.settle().map(|()| pending))
            .await
            .map_err(|fault| fault.at(&path))?;
        Ok(Self {
            files,
            path,
            pending,
            written,
        })
    }

    /// Puts the file under its name and says how long it is.
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
