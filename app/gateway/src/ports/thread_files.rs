//! Port of the files of threads.

use std::fmt;

use async_trait::async_trait;
use harness::ids::ThreadId;
use harness::sandbox::{CopyLimits, FileFailure, FileHome, OrphanedThread, ThreadFiles};

/// A thread's files could not be removed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("failed to remove the thread's files: {0}")]
pub struct ThreadFilesError(pub String);

/// Storage of the files of threads.
#[async_trait]
pub trait ThreadFilesPort: Send + Sync + fmt::Debug {
    /// Returns the files of one thread of one user, without disk access.
    fn thread(&self, user: &str, thread: &ThreadId) -> ThreadFiles;
    /// Copies the files of a thread to a new thread of the same user, which has no row yet. Returns
    /// `false` if there are none.
    ///
    /// The caller creates the row and then clears the record of the copy, as of a
    /// [removal](Self::note_removal); otherwise it deletes the files, or a later sweep does.
    async fn copy_thread(
        &self,
        user: &str,
        from: &ThreadId,
        to: &ThreadId,
    ) -> Result<bool, ThreadFilesError> {
        let (from, to) = (self.thread(user, from), self.thread(user, to));
        Ok(from.copy_to(&to, CopyLimits::default()).await?)
    }
    /// Removes all files of the thread and its sandbox. Idempotent.
    async fn delete_thread(&self, user: &str, thread: &ThreadId) -> Result<(), ThreadFilesError>;
    /// Records that the thread's row is about to be removed, so that a later sweep finds its files
    /// even if this process dies in between; with `is_removed == false`, clears that record and the
    /// one of a copy.
    async fn note_removal(
        &self,
        user: &str,
        thread: &ThreadId,
        is_removed: bool,
    ) -> Result<(), ThreadFilesError>;
    /// Finishes interrupted removals, and returns the recorded threads: the caller
    /// [removes](Self::delete_orphaned) the files of those whose row no longer exists.
    async fn sweep(&self) -> Result<Vec<OrphanedThread>, ThreadFilesError>;
    /// Removes the remaining files of a thread that has no row.
    async fn delete_orphaned(&self, orphaned: OrphanedThread) -> Result<(), ThreadFilesError>;
}

impl From<FileFailure> for ThreadFilesError {
    fn from(fault: FileFailure) -> Self {
        Self(fault.to_string())
    }
}

/// Files without a sandbox.
#[async_trait]
impl ThreadFilesPort for FileHome {
    fn thread(&self, user: &str, thread: &ThreadId) -> ThreadFiles {
        FileHome::thread(self, user, thread)
    }

    async fn delete_thread(&self, user: &str, thread: &ThreadId) -> Result<(), ThreadFilesError> {
        FileHome::thread(self, user, thread).remove_all().await?;
        Ok(())
    }

    async fn note_removal(
        &self,
        user: &str,
        thread: &ThreadId,
        is_removed: bool,
    ) -> Result<(), ThreadFilesError> {
        let files = FileHome::thread(self, user, thread);
        Ok(if is_removed {
            files.note_removal().await
        } else {
            files.forget_removal().await
        }?)
    }

    async fn sweep(&self) -> Result<Vec<OrphanedThread>, ThreadFilesError> {
        Ok(FileHome::sweep(self).await?)
    }

    async fn delete_orphaned(&self, orphaned: OrphanedThread) -> Result<(), ThreadFilesError> {
        FileHome::remove_left(self, orphaned).await?;
        Ok(())
    }
}
