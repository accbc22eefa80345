//! Read-only inspection of a database: creates no directory, file, lock or schema.

use std::fmt;
use std::io;
use std::path::Path;

use sea_orm::{
    ConnectionTrait, DatabaseConnection, DbBackend, SqlxPostgresConnector, SqlxSqliteConnector,
    Statement,
};
use sqlx::postgres::PgPoolOptions;

use crate::db::config::{DatabaseConfig, OpenError, PostgresConfig};
use crate::db::connect::{Database, connection_failed, database_refused};
use crate::db::error::DbFailure;
use crate::db::migration::progress::ProgressFile;
use crate::db::migration::{APPLIED, names};
use crate::db::open_writer::{MAX_CHECKED_BYTES, check};
use crate::db::pool::{ACQUIRE_TIMEOUT, postgres_options, sqlite_options, sqlite_pool};
use crate::files::data_lock::DataLock;
use crate::files::database_files::DATABASE_FILE;

/// Counts the session locks of deerflow processes on this database and schema.
const POSTGRES_IN_USE: &str = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1 \
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) \
    AND ((classid::bigint << 32) | objid::bigint) = hashtextextended('deerflow:' || current_schema(), 0)";

/// Result of the inspection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// State of the schema.
    pub schema: Schema,
    /// `true` if a running deerflow uses it.
    pub in_use: bool,
    /// Progress of the migration that a deerflow performs on SQLite now.
    pub migration: Option<String>,
}

/// Comparison of a database's schema with this version's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Schema {
    /// There is no schema. The first start creates it, and the file too.
    Missing,
    /// The next start migrates it.
    Older {
        /// Newest migration of the database.
        version: String,
    },
    /// The schema is of this version.
    Current,
    /// A newer deerflow wrote it.
    Newer {
        /// A migration that this version does not know.
        version: String,
    },
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("missing"),
            Self::Older { version } => write!(f, "of an older version ({version})"),
            Self::Current => f.write_str("of this version"),
            Self::Newer { version } => write!(f, "of a newer version ({version})"),
        }
    }
}

impl Database {
    /// Inspects the database without opening it for use. An error is the reason why a start could
    /// not read it.
    pub async fn probe(config: &DatabaseConfig) -> Result<Probe, OpenError> {
        match config {
            DatabaseConfig::Memory => Ok(Probe {
                schema: Schema::Missing,
                in_use: false,
                migration: None,
            }),
            DatabaseConfig::Sqlite(directory) => probe_sqlite(directory).await,
            DatabaseConfig::Postgres(postgres) => probe_postgres(postgres).await,
        }
    }
}

async fn probe_sqlite(directory: &Path) -> Result<Probe, OpenError> {
    let directory_unusable = |error: io::Error| OpenError::Directory {
        directory: directory.to_owned(),
        reason: error.to_string(),
    };
    let file = directory.join(DATABASE_FILE);
    let in_use = DataLock::is_held(directory).map_err(directory_unusable)?;
    let Some(length) = length_of(&file).map_err(directory_unusable)? else {
        return Ok(Probe {
            schema: Schema::Missing,
            in_use,
            migration: None,
        });
    };
    // Without a WAL the file of an unused database cannot change, and no shared-memory file is
    // needed to read it.
    let immutable = !in_use
        && length_of(&directory.join(format!("{DATABASE_FILE}-wal")))
            .map_err(directory_unusable)?
            .is_none_or(|length| length == 0);
    let read_schema_result = async {
        let options = sqlite_options()
            .filename(&file)
            .create_if_missing(false)
            .read_only(true)
            .immutable(immutable);
        let pool = sqlite_pool(1)
            .connect_with(options)
            .await
            .map_err(|error| DbFailure::from(&error))?;
        let db = SqlxSqliteConnector::from_sqlx_sqlite_pool(pool);
        if !in_use && length <= MAX_CHECKED_BYTES {
            check(&db).await?;
        }
        let schema = schema_of(&db).await?;
        db.close().await?;
        Ok(schema)
    };
    let schema = read_schema_result.await.map_err(|failure| match failure {
        DbFailure::Failed(reason) | DbFailure::Disk(reason) => OpenError::Damaged {
            file: file.clone(),
            reason,
        },
        other => OpenError::Database(format!(
            "{}: {}",
            file.display(),
            deerflow_runtime::runs::store::StoreError::from(other)
        )),
    })?;
    let is_older = matches!(schema, Schema::Older { .. });
    let migration = (in_use && is_older)
        .then(|| ProgressFile::read(directory))
        .flatten();
    Ok(Probe {
        schema,
        in_use,
        migration,
    })
}

async fn probe_postgres(config: &PostgresConfig) -> Result<Probe, OpenError> {
    let options = postgres_options(config)?.options([("default_transaction_read_only", "on")]);
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .connect_with(options)
        .await
        .map_err(connection_failed)?;
    let db = SqlxPostgresConnector::from_sqlx_postgres_pool(pool);
    let in_use = count(&db, POSTGRES_IN_USE)
        .await
        .map_err(database_refused)?
        > 0;
    let schema = schema_of(&db).await.map_err(database_refused)?;
    db.close().await.map_err(database_refused)?;
    Ok(Probe {
        schema,
        in_use,
        migration: None,
    })
}

pub(crate) async fn schema_of(db: &DatabaseConnection) -> Result<Schema, sea_orm::DbErr> {
    let exists_sql = match db.get_database_backend() {
        DbBackend::Postgres => {
            format!("SELECT count(*) FROM pg_class WHERE oid = to_regclass('{APPLIED}')")
        }
        _ => format!("SELECT count(*) FROM sqlite_master WHERE name = '{APPLIED}'"),
    };
    if count(db, &exists_sql).await? == 0 {
        return Ok(Schema::Missing);
    }
    let statement = Statement::from_string(
        db.get_database_backend(),
        format!("SELECT version FROM {APPLIED} ORDER BY version"),
    );
    let rows = db.query_all_raw(statement).await?;
    let applied = rows
        .iter()
        .map(|row| row.try_get_by_index::<String>(0))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(compare(&applied, &names()))
}

fn compare(applied: &[String], known: &[String]) -> Schema {
    if let Some(version) = applied.iter().find(|version| !known.contains(version)) {
        return Schema::Newer {
            version: version.clone(),
        };
    }
    match applied.last() {
        None => Schema::Missing,
        Some(version) if applied.len() < known.len() => Schema::Older {
            version: version.clone(),
        },
        Some(_) => Schema::Current,
    }
}

async fn count(db: &DatabaseConnection, query: &str) -> Result<i64, sea_orm::DbErr> {
    let row = db
        .query_one_raw(Statement::from_string(db.get_database_backend(), query))
        .await?;
    row.map_or(Ok(0), |row| row.try_get_by_index(0))
}

/// Returns the length of a file, or `None` if it does not exist.
fn length_of(file: &Path) -> io::Result<Option<u64>> {
    match std::fs::metadata(file) {
        Ok(metadata) => Ok(Some(metadata.len())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
#[path = "probe_tests.rs"]
mod tests;
