//! Readiness of storage: probes, and the reasons why writes fail.

use async_trait::async_trait;

/// File or folder that a process writes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoredFile {
    /// Database file.
    Database,
    /// Write-ahead log of the database.
    DatabaseLog,
    /// Shared-memory index of the write-ahead log, which holds the locks of all connections.
    DatabaseIndex,
    /// File whose lock excludes other processes.
    Lock,
    /// Journal of a thread.
    Journal,
    /// Folder of the journals.
    JournalFolder,
    /// Folder of all other data.
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

/// Reason why writes fail. Its text contains no path, so it may be public.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotReady {
    /// No space is left, or only the reserve for deletions and for ends of runs.
    #[error("disk full")]
    DiskFull,
    /// An open file was removed: writes to it would be lost.
    #[error("{0} was removed")]
    Removed(StoredFile),
    /// An open file was replaced by another.
    #[error("{0} was replaced")]
    Replaced(StoredFile),
    /// The database is read-only.
    #[error("database is read-only")]
    DatabaseReadOnly,
    /// The folder is not writable.
    #[error("{0} is not writable")]
    FolderNotWritable(StoredFile),
    /// The database cannot be reached.
    #[error("database is not available")]
    DatabaseUnavailable,
    /// Another failure; the log has the details.
    #[error("write failed")]
    WriteFailed,
}

/// Probe of a storage location that must accept writes before requests are accepted.
#[async_trait]
pub trait ReadinessProbe: Send + Sync + std::fmt::Debug {
    /// Returns the component's name in the response.
    fn name(&self) -> &'static str;

    /// Writes a small amount of data and waits until it is on stable storage. The future may be
    /// dropped early; the caller limits time and rate.
    ///
    /// # Errors
    /// The reason why the component accepts no writes. Details are logged.
    async fn probe(&self) -> Result<(), NotReady>;

    /// Returns without blocking whether space is so low that no new rows or files may be stored.
    fn is_short_of_space(&self) -> bool {
        false
    }
}
