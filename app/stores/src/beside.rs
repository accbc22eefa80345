//! A database that a running server may hold open: a way of its own beside the server's, for one command of an operator.

use harness::runtime::runs::store::StoreError;
use sea_orm::{DatabaseConnection, SqlxPostgresConnector, SqlxSqliteConnector};
use sqlx::postgres::PgPoolOptions;

use crate::connect::{
    ACQUIRE_LIMIT, Database, DatabaseConfig, FILE, OpenError, postgres_options, sqlite_options,
    sqlite_pool, unreachable,
};
use crate::error::Fault;
use crate::probe::{Schema, schema_of};

impl Database {
    /// Opens what is there without taking it from a server: no lock, no new file, no new schema. Writes wait for the server's and
    /// the server's for them, which is a moment. Nothing is kept in memory, so that is an error, and so is a schema of another
    /// version.
    pub async fn beside_a_server(config: &DatabaseConfig) -> Result<Self, OpenError> {
        let connection = connect(config).await?;
        let schema = schema_of(&connection).await.map_err(|error| {
            OpenError::Database(StoreError::from(Fault::from(error)).to_string())
        })?;
        match schema {
            Schema::Current => Ok(Self::over(connection)),
            other => Err(OpenError::Database(format!(
                "its schema is not of this version of deerflow ({other:?}): use the version of the server, or start a server of this one first"
            ))),
        }
    }
}

async fn connect(config: &DatabaseConfig) -> Result<DatabaseConnection, OpenError> {
    match config {
        DatabaseConfig::Memory => Err(OpenError::Settings(
            "a database in memory ends with its process",
        )),
        DatabaseConfig::Sqlite(directory) => {
            let options = sqlite_options()
                .filename(directory.join(FILE))
                .create_if_missing(false);
            Ok(SqlxSqliteConnector::from_sqlx_sqlite_pool(
                sqlite_pool(1)
                    .connect_with(options)
                    .await
                    .map_err(unreachable)?,
            ))
        }
        DatabaseConfig::Postgres(postgres) => {
            let options = postgres_options(postgres)?;
            let pool = PgPoolOptions::new()
                .max_connections(1)
                .acquire_timeout(ACQUIRE_LIMIT)
                .connect_with(options)
                .await;
            Ok(SqlxPostgresConnector::from_sqlx_postgres_pool(
                pool.map_err(unreachable)?,
            ))
        }
    }
}
