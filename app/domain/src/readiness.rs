//! Readiness of the places where this process writes: the reasons, and the port that asks for them.

use async_trait::async_trait;

/// A file or folder that a process writes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoredFile {
    /// The file of the database.
    Database,
    /// The write-ahead log beside it.
    DatabaseLog,
    /// The shared memory beside it, which holds the locks of all connections.
    DatabaseIndex,
    /// The file whose lock keeps other processes out.
    Lock,
    /// The journal of a thread.
    Journal,
    /// The folder of the journals.
    JournalFolder,
    /// The folder that everything else is written to.
    DataFolder,
}

impl std::fmt::Display for StoredFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Database => "database file",
            Self::DatabaseLog => "database log file",
            Self::DatabaseIndex => "database index file",
            Self::Lock => "lock file",
            Self::Journal => "journal file",
            Self::JournalFolder => "journal folder",
            Self::DataFolder => "data folder",
        })
    }
}

/// A reason for which nothing can be written. Its text names no path, so anybody may read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotReady {
    /// No space is left, or the space that is left is kept for deletes and ends of runs.
    #[error("disk full")]
    DiskFull,
    /// A file that is open was removed: what is written to it would be lost.
    #[error("{0} was removed")]
    Removed(StoredFile),
    /// Another file stands where the open one was.
    #[error("{0} was replaced")]
    Replaced(StoredFile),
    /// The database takes no writes.
    #[error("database is read-only")]
    DatabaseReadOnly,
    /// The folder takes no writes.
    #[error("{0} is not writable")]
    FolderNotWritable(StoredFile),
    /// It cannot be reached now.
    #[error("database is not available")]
    DatabaseUnavailable,
    /// It failed in another way; the log says how.
    #[error("write failed")]
    WriteFailed,
}

/// A place that must take writes before requests are accepted.
#[async_trait]
pub trait ReadinessProbe: Send + Sync + std::fmt::Debug {
    /// The name of the part in the answer.
    fn name(&self) -> &'static str;

    /// Writes a little and waits until it is on stable storage. May be dropped before it ends; the caller bounds the time and the rate.
    ///
    /// # Errors
    /// The reason for which the part takes no writes. Details go to the log.
    async fn probe(&self) -> Result<(), NotReady>;

    /// Returns at once whether space is so low that nothing new is to be stored, in rows or in files.
    fn is_short_of_space(&self) -> bool {
        false
    }
}
