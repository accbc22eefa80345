//! Integrity check of a database.

use sea_orm::{ConnectionTrait, DatabaseConnection, DbErr, Statement};

use super::error::UpkeepError;
use crate::db::config::DatabaseConfig;
use crate::db::connect::Database;
use crate::files::database_files::DATABASE_FILE;

/// Maximum number of reported problems per check.
const MAX_PROBLEMS: usize = 100;

/// Invalid indexes of Postgres: an interrupted `CREATE INDEX CONCURRENTLY` leaves them.
const INVALID_INDEXES: &str = "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid \
    WHERE c.relnamespace = current_schema()::regnamespace AND NOT i.indisvalid ORDER BY 1 LIMIT 100";

/// Result of an integrity check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Integrity {
    /// Problems, at most 100 per kind; empty for a sound database.
    pub problems: Vec<String>,
    /// Size of the data in bytes, without the write-ahead log.
    pub bytes: u64,
    /// Bytes of free pages inside a SQLite file; 0 on Postgres, which manages them itself.
    pub free_bytes: u64,
}

impl Database {
    /// Reads every page of a SQLite file and checks indexes and references. On Postgres it checks
    /// the schema's version and looks for invalid indexes; `pg_amcheck` checks pages. Works while a
    /// server is running.
    pub async fn check_integrity(config: &DatabaseConfig) -> Result<Integrity, UpkeepError> {
        if let DatabaseConfig::Sqlite(directory) = config {
            let file = directory.join(DATABASE_FILE);
            if !file.is_file() {
                return Err(UpkeepError::Missing(file));
            }
        }
        let database = Self::open_shared(config).await?;
        let connection = database.reads();
        let integrity = match config {
            DatabaseConfig::Postgres(_) => postgres(connection).await?,
            DatabaseConfig::Sqlite(_) | DatabaseConfig::Memory => sqlite(connection).await?,
        };
        Ok(integrity)
    }
}

/// Checks an open SQLite file.
pub(super) async fn sqlite(connection: &DatabaseConnection) -> Result<Integrity, DbErr> {
    let pages = texts(
        connection,
        &format!("PRAGMA integrity_check({MAX_PROBLEMS})"),
    )
    .await?;
    let references = texts(
        connection,
        &format!(
            "SELECT 'row ' || coalesce(rowid, '?') || ' of ' || \"table\" || ' refers to a missing row of ' || parent \
             FROM pragma_foreign_key_check LIMIT {MAX_PROBLEMS}"
        ),
    )
    .await?;
    let problems = pages.into_iter().filter(|line| line != "ok");
    Ok(Integrity {
        problems: problems.chain(references).collect(),
        bytes: number(
            connection,
            "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
        )
        .await?,
        free_bytes: number(
            connection,
            "SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size",
        )
        .await?,
    })
}

async fn postgres(connection: &DatabaseConnection) -> Result<Integrity, DbErr> {
    let invalid = texts(connection, INVALID_INDEXES).await?;
    let bytes = "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class \
        WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'm')";
    Ok(Integrity {
        problems: invalid
            .into_iter()
            .map(|index| format!("index {index} is invalid: run REINDEX INDEX {index}"))
            .collect(),
        bytes: number(connection, bytes).await?,
        free_bytes: 0,
    })
}

/// Runs a query of one text column.
async fn texts(connection: &DatabaseConnection, sql: &str) -> Result<Vec<String>, DbErr> {
    let backend = connection.get_database_backend();
    let rows = connection
        .query_all_raw(Statement::from_string(backend, sql))
        .await?;
    rows.iter().map(|row| row.try_get_by_index(0)).collect()
}

/// Runs a query of one number that is never negative.
pub(super) async fn number(connection: &DatabaseConnection, sql: &str) -> Result<u64, DbErr> {
    let backend = connection.get_database_backend();
    let row = connection
        .query_one_raw(Statement::from_string(backend, sql))
        .await?;
    let value: i64 = row.map_or(Ok(0), |row| row.try_get_by_index(0))?;
    Ok(value.unsigned_abs())
}
