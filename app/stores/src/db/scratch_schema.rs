//! Schemas of a scratch Postgres server for tests within this crate.

use sqlx::{Connection, Executor, PgConnection};

use crate::PostgresConfig;

fn url() -> String {
    #[expect(clippy::disallowed_methods, reason = "tests read no configuration")]
    let url = std::env::var("DEERFLOW_TEST_POSTGRES_URL");
    url.expect("set DEERFLOW_TEST_POSTGRES_URL to a scratch database; the tests make schemas in it")
}

/// Returns settings with exclusive use of `schema` and one connection.
pub(crate) fn settings(schema: &str) -> PostgresConfig {
    PostgresConfig {
        url: url().into(),
        schema: Some(schema.to_owned()),
        max_connections: 1,
        exclusive: true,
    }
}

/// Deletes the schema of an earlier test run.
pub(crate) async fn delete(schema: &str) {
    let mut direct = PgConnection::connect(&url()).await.unwrap();
    let delete = format!("DROP SCHEMA IF EXISTS {schema} CASCADE");
    direct.execute(sqlx::AssertSqlSafe(delete)).await.unwrap();
}
