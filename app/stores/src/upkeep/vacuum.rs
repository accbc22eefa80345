//! Vacuum: the disk space of deleted rows is returned to the file system.

use std::path::Path;

use sea_orm::{ConnectionTrait, DatabaseConnection};

use super::check::number;
use super::copies;
use super::error::{UpkeepError, at};
use crate::db::config::{DatabaseConfig, OpenError};
use crate::db::connect::Database;
use crate::files::data_lock::DataLock;
use crate::files::database_files::DATABASE_FILE;
use crate::files::interrupted_restore;

/// Result of a vacuum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vacuumed {
    /// Bytes before.
    pub before: u64,
    /// Bytes after.
    pub after: u64,
}

pub(super) const WRITE_LOG_BACK: &str = "PRAGMA wal_checkpoint(TRUNCATE)";

const POSTGRES_BYTES: &str = "SELECT pg_database_size(current_database())::bigint";

impl Database {
    /// Compacts the database. A SQLite file is rewritten, which needs as much free space as its
    /// data and no running server; later deletions free their space while the server runs. On
    /// Postgres it runs `VACUUM (ANALYZE)`, which makes the space of deleted rows reusable and works
    /// while servers run.
    pub async fn vacuum(config: &DatabaseConfig) -> Result<Vacuumed, UpkeepError> {
        match config {
            DatabaseConfig::Memory => Err(UpkeepError::NotAFile {
                instead: "a database in memory has no file to compact",
            }),
            DatabaseConfig::Sqlite(directory) => sqlite(directory).await,
            DatabaseConfig::Postgres(_) => {
                let database = Self::open_shared(config).await?;
                postgres(database.reads()).await
            }
        }
    }
}

async fn sqlite(directory: &Path) -> Result<Vacuumed, UpkeepError> {
    let file = directory.join(DATABASE_FILE);
    if !file.is_file() {
        return Err(UpkeepError::Missing(file));
    }
    let _lock = lock(directory)?;
    interrupted_restore::repair(directory).map_err(at(directory))?;
    let connection = copies::open(&file).await?;
    // Writes the log back, so that the file has all data.
    connection.execute_unprepared(WRITE_LOG_BACK).await?;
    let before = std::fs::metadata(&file).map_err(at(&file))?.len();
    connection
        .execute_unprepared("PRAGMA auto_vacuum = INCREMENTAL")
        .await?;
    connection.execute_unprepared("VACUUM").await?;
    connection.execute_unprepared(WRITE_LOG_BACK).await?;
    connection.close().await?;
    let after = std::fs::metadata(&file).map_err(at(&file))?.len();
    Ok(Vacuumed { before, after })
}

async fn postgres(connection: &DatabaseConnection) -> Result<Vacuumed, UpkeepError> {
    // A vacuum of large tables takes longer than any request may.
    connection
        .execute_unprepared("SET statement_timeout = 0")
        .await?;
    let before = number(connection, POSTGRES_BYTES).await?;
    connection.execute_unprepared("VACUUM (ANALYZE)").await?;
    let after = number(connection, POSTGRES_BYTES).await?;
    Ok(Vacuumed { before, after })
}

/// Acquires the data directory, which a running server holds.
pub(super) fn lock(directory: &Path) -> Result<DataLock, UpkeepError> {
    DataLock::acquire(directory)
        .map_err(at(directory))?
        .ok_or_else(|| {
            OpenError::InUse {
                directory: directory.to_owned(),
            }
            .into()
        })
}
