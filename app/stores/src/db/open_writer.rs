//! Opening of the writer's connection to a SQLite file, with the check and the migration of the file.

use std::path::Path;

use sea_orm::{ConnectionTrait, DatabaseConnection, DbErr, SqlxSqliteConnector};
use sqlx::sqlite::SqliteConnectOptions;

use crate::db::error::DbFailure;
use crate::db::migration::migrate;
use crate::db::migration::progress::OnProgress;
use crate::db::pool::writer_pool;

/// Files up to this size are checked page by page at startup. Checking a larger one would delay the
/// start.
pub(crate) const MAX_CHECKED_BYTES: u64 = 64 << 20;

/// Error of opening the writer's connection.
pub(crate) enum WriterOpenError {
    Reading(DbFailure),
    Migrating(DbFailure),
}

/// Opens the writer's connection, checks the file and migrates its schema.
pub(crate) async fn open_writer(
    options: &SqliteConnectOptions,
    file: &Path,
    on_progress: OnProgress<'_>,
) -> Result<DatabaseConnection, WriterOpenError> {
    let pool = writer_pool()
        .connect_with(options.clone())
        .await
        .map_err(|error| WriterOpenError::Reading(DbFailure::from(&error)))?;
    let writer = SqlxSqliteConnector::from_sqlx_sqlite_pool(pool);
    if std::fs::metadata(file).is_ok_and(|found| found.len() <= MAX_CHECKED_BYTES) {
        check(&writer).await.map_err(WriterOpenError::Reading)?;
    }
    migrate(&writer, on_progress)
        .await
        .map_err(|error| WriterOpenError::Migrating(error.into()))?;
    read_schema(&writer)
        .await
        .map_err(|error| WriterOpenError::Reading(error.into()))?;
    Ok(writer)
}

/// Reads from the file, which opens the WAL.
pub(crate) async fn read_schema(db: &DatabaseConnection) -> Result<(), DbErr> {
    db.execute_unprepared("SELECT COUNT(*) FROM sqlite_schema")
        .await
        .map(drop)
}

/// Checks every page once.
pub(crate) async fn check(db: &DatabaseConnection) -> Result<(), DbFailure> {
    let statement =
        sea_orm::Statement::from_string(db.get_database_backend(), "PRAGMA quick_check(1)");
    let row = db.query_one_raw(statement).await?;
    let verdict = row
        .map(|row| row.try_get_by_index::<String>(0))
        .transpose()?;
    match verdict.as_deref() {
        Some("ok") => Ok(()),
        other => Err(DbFailure::Failed(
            other.unwrap_or("the check returned no result").to_owned(),
        )),
    }
}
