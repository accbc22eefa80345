//! Errors of upkeep.

use std::io;
use std::path::{Path, PathBuf};

use deerflow_runtime::runs::store::StoreError;
use sea_orm::DbErr;

use crate::db::config::OpenError;
use crate::db::error::DbFailure;

/// Reason why a check, vacuum, backup or restore was refused or failed. The database is unchanged,
/// except after [`UpkeepError::RestoredDamaged`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UpkeepError {
    /// The database cannot be opened, or is in use.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The operation exists for SQLite files only.
    #[error("the configured database is not a SQLite file: {instead}")]
    NotAFile {
        /// Alternative for the operator.
        instead: &'static str,
    },
    /// There is no database to work on.
    #[error("{0} does not exist; the first start of the server creates it")]
    Missing(PathBuf),
    /// The target of a backup exists. Backups replace no file.
    #[error("{0} exists; choose another name")]
    Exists(PathBuf),
    /// A file has the name that the former database would get.
    #[error("{0} exists, and the former database would get that name; restore again in a second")]
    FormerExists(PathBuf),
    /// Another process writes the same backup at this time.
    #[error("another process writes the backup {0} now; wait for it or choose another name")]
    BackupRunning(PathBuf),
    /// The file system has too little space for a copy.
    #[error("a copy needs {needed} bytes, but {folder} has {free} bytes free")]
    NoSpace {
        /// Folder of the copy.
        folder: PathBuf,
        /// Size of the copy in bytes.
        needed: u64,
        /// Free bytes.
        free: u64,
    },
    /// The backup was sound, and has replaced the database, but is damaged at its place.
    #[error("{file} was restored and is damaged there: {reason}")]
    RestoredDamaged {
        /// Path of the database.
        file: PathBuf,
        /// Description of the damage.
        reason: String,
    },
    /// The file is no complete backup of this version or an earlier one.
    #[error("{file} cannot be restored: {reason}")]
    NotRestorable {
        /// Path of the file.
        file: PathBuf,
        /// Reason.
        reason: String,
    },
    /// A file operation failed.
    // The text has the error of the operating system, so it is no source, which would print it again.
    #[error("{path}: {error}")]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        error: io::Error,
    },
    /// A statement failed.
    #[error("the database failed: {0}")]
    Statement(String),
}

impl From<DbErr> for UpkeepError {
    fn from(error: DbErr) -> Self {
        DbFailure::from(error).into()
    }
}

impl From<DbFailure> for UpkeepError {
    fn from(failure: DbFailure) -> Self {
        Self::Statement(StoreError::from(failure).to_string())
    }
}

/// Adds the path to an error of a file operation.
pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> UpkeepError {
    let path = path.to_owned();
    move |error| UpkeepError::File { path, error }
}
