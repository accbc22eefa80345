//! Classifies database errors. Texts come from the database's own message, never from the
//! connection settings.

use deerflow_domain::readiness::NotReady;
use deerflow_runtime::checkpoint::{CheckpointError, PutError};
use deerflow_runtime::runs::store::{AdmitError, CommitError, StoreError};
use metrics::counter;
use sea_orm::{ConnAcquireErr, DbErr, RuntimeErr, SqlxError};

/// Failure of the database, classified by how callers can react.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DbFailure {
    /// The disk is full.
    Full(String),
    /// The database is read-only.
    ReadOnly(String),
    /// The server is temporarily read-only, for example a standby; a retry may reach a primary.
    ServerReadOnly(String),
    /// A file of the database was removed or replaced; no write may be acknowledged.
    Gone(NotReady),
    /// An I/O error without a specific cause, including an exceeded quota.
    Disk(String),
    /// Unreachable, locked by others, or too slow; a retry may succeed.
    Unavailable(String),
    /// Two transactions conflicted; the work can be retried at once.
    Conflict(String),
    /// Any other failure.
    Failed(String),
}

impl DbFailure {
    /// Returns `true` for failures that a full disk may cause.
    pub(crate) fn may_lack_space(&self) -> bool {
        matches!(self, Self::Full(_) | Self::Disk(_))
    }

    /// Returns the value of the `kind` label in metrics.
    fn kind(&self) -> &'static str {
        match self {
            Self::Full(_) => "full",
            Self::ReadOnly(_) | Self::ServerReadOnly(_) => "read_only",
            Self::Gone(_) => "gone",
            Self::Disk(_) => "disk",
            Self::Unavailable(_) => "unavailable",
            Self::Conflict(_) => "conflict",
            Self::Failed(_) => "failed",
        }
    }
}

impl From<DbErr> for DbFailure {
    fn from(error: DbErr) -> Self {
        match error {
            DbErr::ConnectionAcquire(ConnAcquireErr::Timeout) => {
                Self::Unavailable("timed out waiting for a database connection".to_owned())
            }
            DbErr::ConnectionAcquire(ConnAcquireErr::ConnectionClosed) => {
                Self::Unavailable("the database is closed".to_owned())
            }
            DbErr::Conn(RuntimeErr::SqlxError(error))
            | DbErr::Exec(RuntimeErr::SqlxError(error))
            | DbErr::Query(RuntimeErr::SqlxError(error)) => Self::from(&*error),
            other => Self::Failed(other.to_string()),
        }
    }
}

impl From<&SqlxError> for DbFailure {
    fn from(error: &SqlxError) -> Self {
        match error {
            SqlxError::Database(error) => {
                let code = error.code().unwrap_or_default();
                let text = format!("{} (code {code})", error.message());
                match code.parse::<i32>() {
                    Ok(code)
                        if error
                            .try_downcast_ref::<sqlx::sqlite::SqliteError>()
                            .is_some() =>
                    {
                        sqlite_failure(code, text)
                    }
                    _ => postgres_failure(&code, text),
                }
            }
            SqlxError::Io(error) if error.kind() == std::io::ErrorKind::StorageFull => {
                Self::Full(error.to_string())
            }
            SqlxError::Io(error) => {
                Self::Unavailable(format!("the connection to the database failed: {error}"))
            }
            // The connection is out of sync with the server: a new connection will work.
            SqlxError::Protocol(text) => {
                Self::Unavailable(format!("the connection to the database failed: {text}"))
            }
            SqlxError::Tls(_) => {
                Self::Unavailable("the encrypted connection to the database failed".to_owned())
            }
            SqlxError::PoolTimedOut => {
                Self::Unavailable("timed out waiting for a database connection".to_owned())
            }
            SqlxError::PoolClosed | SqlxError::WorkerCrashed => {
                Self::Unavailable("the database is closed".to_owned())
            }
            SqlxError::Configuration(_) => {
                Self::Failed("the connection settings are not valid".to_owned())
            }
            other => Self::Failed(other.to_string()),
        }
    }
}

fn sqlite_failure(extended: i32, text: String) -> DbFailure {
    // The low byte is the primary result code: https://sqlite.org/rescode.html
    match extended & 0xff {
        13 => DbFailure::Full(text),
        8 => DbFailure::ReadOnly(text),
        10 => DbFailure::Disk(text),
        5 | 6 | 14 => DbFailure::Unavailable(text),
        _ => DbFailure::Failed(text),
    }
}

fn postgres_failure(state: &str, text: String) -> DbFailure {
    match state {
        "53100" => DbFailure::Full(text),
        "40001" | "40P01" => DbFailure::Conflict(text),
        // Statement timeout, lock not available, out of memory, too many connections, shutdown,
        // connection lost.
        "57014" | "55P03" | "53200" | "53300" | "57P01" | "57P02" | "57P03" | "57P05" => {
            DbFailure::Unavailable(text)
        }
        // The server closed the session because its transaction was idle for too long, for example
        // in a suspended process. A new connection will work.
        "25P03" | "25P04" => DbFailure::Unavailable(text),
        // The server is a standby after a failover, or an administrator made it read-only, as some
        // do before its disk is full.
        "25006" => DbFailure::ServerReadOnly(text),
        other if other.starts_with("08") => DbFailure::Unavailable(text),
        _ => DbFailure::Failed(text),
    }
}

impl From<DbFailure> for StoreError {
    fn from(failure: DbFailure) -> Self {
        counter!("deerflow_database_errors_total", "kind" => failure.kind()).increment(1);
        match failure {
            DbFailure::Full(text) | DbFailure::ReadOnly(text) => Self::NotWritable(text),
            DbFailure::Unavailable(text)
            | DbFailure::Conflict(text)
            | DbFailure::ServerReadOnly(text) => Self::Unavailable(text),
            DbFailure::Gone(reason) => Self::Unavailable(reason.to_string()),
            DbFailure::Failed(text) | DbFailure::Disk(text) => Self::Failed(text),
        }
    }
}

/// Error of a port that can represent a database failure.
pub(crate) trait FromDbFailure {
    /// Converts a database failure to the port's error.
    fn from_db_failure(failure: DbFailure) -> Self;
}

impl FromDbFailure for StoreError {
    fn from_db_failure(failure: DbFailure) -> Self {
        failure.into()
    }
}

impl FromDbFailure for NotReady {
    fn from_db_failure(failure: DbFailure) -> Self {
        match failure {
            DbFailure::Full(_) => Self::DiskFull,
            DbFailure::ReadOnly(_) | DbFailure::ServerReadOnly(_) => Self::DatabaseReadOnly,
            DbFailure::Gone(reason) => reason,
            DbFailure::Unavailable(text) | DbFailure::Conflict(text) => {
                tracing::warn!(text, "the database refused a trial write");
                Self::DatabaseUnavailable
            }
            DbFailure::Failed(text) | DbFailure::Disk(text) => {
                tracing::error!(text, "a trial write to the database failed");
                Self::WriteFailed
            }
        }
    }
}

impl FromDbFailure for AdmitError {
    fn from_db_failure(failure: DbFailure) -> Self {
        Self::Store(failure.into())
    }
}

impl FromDbFailure for CommitError {
    fn from_db_failure(failure: DbFailure) -> Self {
        Self::Store(failure.into())
    }
}

impl FromDbFailure for CheckpointError {
    fn from_db_failure(failure: DbFailure) -> Self {
        match failure {
            DbFailure::Full(_) => Self::StorageFull,
            other => Self::Store(other.into()),
        }
    }
}

impl FromDbFailure for PutError {
    fn from_db_failure(failure: DbFailure) -> Self {
        CheckpointError::from_db_failure(failure).into()
    }
}

/// Converts the result of a read to the port's error.
pub(crate) fn read<T>(result: Result<T, DbErr>) -> Result<T, StoreError> {
    result.map_err(|error| DbFailure::from(error).into())
}

/// Converts the result of a read of checkpoints.
pub(crate) fn read_checkpoints<T>(result: Result<T, DbErr>) -> Result<T, CheckpointError> {
    result.map_err(|error| CheckpointError::from_db_failure(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_disk_read_only_file_and_lock_are_distinct_failures() {
        assert!(matches!(
            sqlite_failure(13, String::new()),
            DbFailure::Full(_)
        ));
        assert!(matches!(
            sqlite_failure(8 | (1 << 8), String::new()),
            DbFailure::ReadOnly(_)
        ));
        assert!(matches!(
            sqlite_failure(5 | (2 << 8), String::new()),
            DbFailure::Unavailable(_)
        ));
        assert!(matches!(
            postgres_failure("53100", String::new()),
            DbFailure::Full(_)
        ));
        assert!(matches!(
            postgres_failure("08006", String::new()),
            DbFailure::Unavailable(_)
        ));
        assert!(matches!(
            postgres_failure("40P01", String::new()),
            DbFailure::Conflict(_)
        ));
        assert!(matches!(
            postgres_failure("25006", String::new()),
            DbFailure::ServerReadOnly(_)
        ));
        assert!(matches!(
            sqlite_failure(10 | (19 << 8), String::new()),
            DbFailure::Disk(_)
        ));
        for passing in ["25P03", "57P05", "53200"] {
            assert!(
                matches!(
                    postgres_failure(passing, String::new()),
                    DbFailure::Unavailable(_)
                ),
                "{passing}"
            );
        }
        assert!(matches!(
            postgres_failure("23505", String::new()),
            DbFailure::Failed(_)
        ));
    }
}
