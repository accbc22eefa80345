//! Configuration of a database, and the errors of opening one.

use std::path::PathBuf;

use secrecy::SecretString;

use crate::files::data_lock::LOCK_FILE;

/// The database to open.
#[derive(Debug, Clone)]
pub enum DatabaseConfig {
    /// SQLite in memory: all data is lost when the process ends.
    Memory,
    /// A SQLite file in this directory, which is created if missing and belongs to one process.
    Sqlite(PathBuf),
    /// A Postgres server.
    Postgres(PostgresConfig),
}

/// A Postgres server, and the schema in it.
#[derive(Debug, Clone)]
pub struct PostgresConfig {
    /// `postgres://user:password@host:port/database`.
    pub url: SecretString,
    /// The schema, created if missing; the server's default search path if absent.
    pub schema: Option<String>,
    /// Maximum number of connections.
    pub max_connections: u32,
    /// If `true`, no other deerflow process may use the same schema: a session lock is held while
    /// the database is open.
    pub exclusive: bool,
}

/// Error of opening a database.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The data directory cannot be created or written.
    #[error("the data directory {directory} cannot be used: {reason}")]
    Directory {
        /// Path of the directory.
        directory: PathBuf,
        /// Error text of the operating system.
        reason: String,
    },
    /// Another process uses the data directory.
    #[error(
        "another process uses {directory} (it holds {LOCK_FILE} there); stop it or choose another directory"
    )]
    InUse {
        /// Path of the directory.
        directory: PathBuf,
    },
    /// Other processes use the same Postgres schema, and this process needs it exclusively.
    #[error(
        "other processes use this postgres database and schema, and stream_bridge.type \"memory\" needs exclusive use: \
         stop the others, or set stream_bridge.type to \"redis\" on every node"
    )]
    InUseByOthers,
    /// A process uses the Postgres schema exclusively.
    #[error(
        "a process with stream_bridge.type \"memory\" uses this postgres database and schema exclusively: stop it, or set \
         stream_bridge.type to \"redis\" there too"
    )]
    InUseByOne,
    /// The file is not a database, or is damaged.
    #[error("the database file {file} is damaged: {reason}")]
    Damaged {
        /// Path of the file.
        file: PathBuf,
        /// Description of the damage.
        reason: String,
    },
    /// The connection string or schema name is not valid. The text does not repeat it, because it
    /// may contain a password.
    #[error("the postgres settings are not valid: {0}")]
    Settings(&'static str),
    /// The database does not answer, or refuses.
    #[error("the database cannot be opened: {0}")]
    Database(String),
}
