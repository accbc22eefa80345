//! A separate connection to a database that a running server may hold open, for a single command of
//! an operator.

use deerflow_runtime::runs::store::StoreError;
use sea_orm::{DatabaseConnection, SqlxPostgresConnector, SqlxSqliteConnector};
use sqlx::postgres::PgPoolOptions;

use crate::db::config::{DatabaseConfig, OpenError};
use crate::db::connect::{Database, connection_failed};
use crate::db::error::DbFailure;
use crate::db::pool::{ACQUIRE_TIMEOUT, postgres_options, sqlite_options, sqlite_pool};
use crate::db::probe::{Schema, schema_of};
use crate::files::database_files::DATABASE_FILE;

impl Database {
    /// Opens an existing database concurrently with a server: acquires no lock, creates no file,
    /// migrates no schema. Writes of this process and of the server wait briefly for each other.
    /// Fails for a database in memory, and for a schema of another version.
    pub async fn open_shared(config: &DatabaseConfig) -> Result<Self, OpenError> {
        let connection = connect(config).await?;
        let schema = schema_of(&connection).await.map_err(|error| {
            OpenError::Database(StoreError::from(DbFailure::from(error)).to_string())
        })?;
        match schema {
            Schema::Current => Ok(Self::from_connection(connection)),
            other => Err(OpenError::Database(format!(
                "its schema is {other}, not of this version of deerflow: use the version of the server, or start a server of this version first"
            ))),
        }
    }
}

async fn connect(config: &DatabaseConfig) -> Result<DatabaseConnection, OpenError> {
    match config {
        DatabaseConfig::Memory => Err(OpenError::Settings(
            "a database in memory exists only within its process",
        )),
        DatabaseConfig::Sqlite(directory) => {
            let options = sqlite_options()
                .filename(directory.join(DATABASE_FILE))
                .create_if_missing(false);
            Ok(SqlxSqliteConnector::from_sqlx_sqlite_pool(
                sqlite_pool(1)
                    .connect_with(options)
                    .await
                    .map_err(connection_failed)?,
            ))
        }
        DatabaseConfig::Postgres(postgres) => {
            let options = postgres_options(postgres)?;
            let pool = PgPoolOptions::new()
                .max_connections(1)
                .acquire_timeout(ACQUIRE_TIMEOUT)
                .connect_with(options)
                .await;
            Ok(SqlxPostgresConnector::from_sqlx_postgres_pool(
                pool.map_err(connection_failed)?,
            ))
        }
    }
}
