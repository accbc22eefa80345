//! What a database error means to callers. Texts come from the database's own message, never from the connection's settings.

use deerflow_domain::readiness::NotReady;
use harness::runtime::checkpoint::{CheckpointError, PutError};
use harness::runtime::runs::store::{AdmitError, CommitError, StoreError};
use metrics::counter;
use sea_orm::{ConnAcquireErr, DbErr, RuntimeErr, SqlxError};

/// A database error by what can be done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No room is left.
    Full(String),
    /// The database may not be written.
    ReadOnly(String),
    /// The server takes no writes now, as one that stands by for another does; a later try may meet one that does.
    ServerReadOnly(String),
    /// A file of the database is not where it was opened; nothing may be acknowledged.
    Gone(NotReady),
    /// The disk failed in a way that the database does not name. A quota that is used up is among them.
    Disk(String),
    /// Not reachable, locked by others, or too slow; a later try may succeed.
    Unavailable(String),
    /// Two transactions got in each other's way; the same work may be done again at once.
    Conflict(String),
    /// Anything else.
    Failed(String),
}

impl Fault {
    /// Recognizes faults that may come from a lack of space.
    pub(crate) fn may_lack_space(&self) -> bool {
        matches!(self, Self::Full(_) | Self::Disk(_))
    }

    /// The word for it in figures.
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

impl From<DbErr> for Fault {
    fn from(error: DbErr) -> Self {
        match error {
            DbErr::ConnectionAcquire(ConnAcquireErr::Timeout) => {
                Self::Unavailable("no connection to the database became free in time".to_owned())
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

impl From<&SqlxError> for Fault {
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
                        sqlite_fault(code, text)
                    }
                    _ => postgres_fault(&code, text),
                }
            }
            SqlxError::Io(error) if error.kind() == std::io::ErrorKind::StorageFull => {
                Self::Full(error.to_string())
            }
            SqlxError::Io(error) => {
                Self::Unavailable(format!("the connection to the database failed: {error}"))
            }
            // Out of step with the server: this connection is of no more use, another one is.
            SqlxError::Protocol(text) => {
                Self::Unavailable(format!("the connection to the database failed: {text}"))
            }
            SqlxError::Tls(_) => {
                Self::Unavailable("the encrypted connection to the database failed".to_owned())
            }
            SqlxError::PoolTimedOut => {
                Self::Unavailable("no connection to the database became free in time".to_owned())
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

fn sqlite_fault(extended: i32, text: String) -> Fault {
    // The low byte is the primary result code: https://sqlite.org/rescode.html
    match extended & 0xff {
        13 => Fault::Full(text),
        8 => Fault::ReadOnly(text),
        10 => Fault::Disk(text),
        5 | 6 | 14 => Fault::Unavailable(text),
        _ => Fault::Failed(text),
    }
}

fn postgres_fault(state: &str, text: String) -> Fault {
    match state {
        "53100" => Fault::Full(text),
        "40001" | "40P01" => Fault::Conflict(text),
        // Cancelled by a time limit, lock not available, too many connections, out of memory, shutting down, connection lost.
        "57014" | "55P03" | "53200" | "53300" | "57P01" | "57P02" | "57P03" | "57P05" => {
            Fault::Unavailable(text)
        }
        // It rested too long inside of a transaction, as a process that was frozen does; another connection is as good as new.
        "25P03" | "25P04" => Fault::Unavailable(text),
        // The server stands by for another one since a failover, which takes the writes; or whoever runs it has made it read-only, as some
        // do before its disk is full.
        "25006" => Fault::ServerReadOnly(text),
        other if other.starts_with("08") => Fault::Unavailable(text),
        _ => Fault::Failed(text),
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        counter!("deerflow_database_errors_total", "kind" => fault.kind()).increment(1);
        match fault {
            Fault::Full(text) | Fault::ReadOnly(text) => Self::NotWritable(text),
            Fault::Unavailable(text) | Fault::Conflict(text) | Fault::ServerReadOnly(text) => {
                Self::Unavailable(text)
            }
            Fault::Gone(reason) => Self::Unavailable(reason.to_string()),
            Fault::Failed(text) | Fault::Disk(text) => Self::Failed(text),
        }
    }
}

/// The error of a port, as far as a database can cause it.
pub(crate) trait FromFault {
    /// The port's word for it.
    fn from_fault(fault: Fault) -> Self;
}

impl FromFault for StoreError {
    fn from_fault(fault: Fault) -> Self {
        fault.into()
    }
}

impl FromFault for NotReady {
    fn from_fault(fault: Fault) -> Self {
        match fault {
            Fault::Full(_) => Self::DiskFull,
            Fault::ReadOnly(_) | Fault::ServerReadOnly(_) => Self::DatabaseReadOnly,
            Fault::Gone(reason) => reason,
            Fault::Unavailable(text) | Fault::Conflict(text) => {
                tracing::warn!(text, "the database took no trial write");
                Self::DatabaseUnavailable
            }
            Fault::Failed(text) | Fault::Disk(text) => {
                tracing::error!(text, "the database failed a trial write");
                Self::WriteFailed
            }
        }
    }
}

impl FromFault for AdmitError {
    fn from_fault(fault: Fault) -> Self {
        Self::Store(fault.into())
    }
}

impl FromFault for CommitError {
    fn from_fault(fault: Fault) -> Self {
        Self::Store(fault.into())
    }
}

impl FromFault for CheckpointError {
    fn from_fault(fault: Fault) -> Self {
        match fault {
            Fault::Full(_) => Self::StorageFull,
            other => Self::Store(other.into()),
        }
    }
}

impl FromFault for PutError {
    fn from_fault(fault: Fault) -> Self {
        CheckpointError::from_fault(fault).into()
    }
}

/// The result of a read, in the port's words.
pub(crate) fn read<T>(result: Result<T, DbErr>) -> Result<T, StoreError> {
    result.map_err(|error| Fault::from(error).into())
}

/// The result of a read of checkpoints.
pub(crate) fn read_checkpoints<T>(result: Result<T, DbErr>) -> Result<T, CheckpointError> {
    result.map_err(|error| CheckpointError::from_fault(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_a_read_only_file_and_a_lock_are_told_apart() {
        assert!(matches!(sqlite_fault(13, String::new()), Fault::Full(_)));
        assert!(matches!(
            sqlite_fault(8 | (1 << 8), String::new()),
            Fault::ReadOnly(_)
        ));
        assert!(matches!(
            sqlite_fault(5 | (2 << 8), String::new()),
            Fault::Unavailable(_)
        ));
        assert!(matches!(
            postgres_fault("53100", String::new()),
            Fault::Full(_)
        ));
        assert!(matches!(
            postgres_fault("08006", String::new()),
            Fault::Unavailable(_)
        ));
        assert!(matches!(
            postgres_fault("40P01", String::new()),
            Fault::Conflict(_)
        ));
        assert!(matches!(
            postgres_fault("25006", String::new()),
            Fault::ServerReadOnly(_)
        ));
        assert!(matches!(
            sqlite_fault(10 | (19 << 8), String::new()),
            Fault::Disk(_)
        ));
        for passing in ["25P03", "57P05", "53200"] {
            assert!(
                matches!(
                    postgres_fault(passing, String::new()),
                    Fault::Unavailable(_)
                ),
                "{passing}"
            );
        }
        assert!(matches!(
            postgres_fault("23505", String::new()),
            Fault::Failed(_)
        ));
    }
}
