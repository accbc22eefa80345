//! Errors of upkeep.

use std::io;
use std::path::{Path, PathBuf};

use deerflow_runtime::runs::store::StoreError;
use sea_orm::DbErr;

use crate::db::config::OpenError;
use crate::db::error::DbFailure;

/// Reason why a check, vacuum, backup or restore was refused or failed. The database is unchanged.
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
    /// The file is no complete backup of this version or an earlier one.
    #[error("{file} cannot be restored: {reason}")]
    NotRestorable {
        /// Path of the file.
        file: PathBuf,
        /// Reason.
        reason: String,
    },
    /// A file operation failed.
    #[error("{path}: {source}")]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A statement failed.
    #[error("the database failed: {0}")]
    Statement(String),
}

impl From<DbErr> for UpkeepError {
    fn from(error: DbErr) -> Self {
        Self::Statement(StoreError::from(DbFailure::from(error)).to_string())
    }
}

/// Adds the path to an error of a file operation.
pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> UpkeepError {
    let path = path.to_owned();
    move |source| UpkeepError::File { path, source }
}
