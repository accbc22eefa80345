//! Schemas of a scratch Postgres, one per test.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use deerflow_stores::{Database, PostgresConfig, SessionLockTimeouts};
use sqlx::{Connection as _, Executor as _};

/// Returns the settings of a schema for this test.
fn postgres_schema() -> (PostgresConfig, String) {
    #[expect(clippy::disallowed_methods, reason = "tests read no configuration")]
    let url = std::env::var("DEERFLOW_TEST_POSTGRES_URL").expect(
        "set DEERFLOW_TEST_POSTGRES_URL to a scratch database such as postgres://user:password@host/database; the tests make schemas in it",
    );
    let mut hasher = DefaultHasher::new();
    std::thread::current().name().hash(&mut hasher);
    let schema = format!("deerflow_test_{:016x}", hasher.finish());
    let config = PostgresConfig {
        url: url.clone().into(),
        schema: Some(schema),
        max_connections: 5,
        exclusive: false,
    };
    (config, url)
}

/// Opens the schema of this test.
pub(crate) async fn open() -> Database {
    let (config, _) = postgres_schema();
    // A server that is slow now and then must not lose the session lock.
    let timeouts = SessionLockTimeouts {
        connect: Duration::from_secs(60),
        release: Duration::from_secs(60),
    };
    Database::open_postgres(&config, timeouts).await.unwrap()
}

/// Opens the schema of this test, emptied before.
pub(crate) async fn open_empty() -> Database {
    let (config, url) = postgres_schema();
    let schema = config.schema.clone().unwrap();
    let mut direct = sqlx::PgConnection::connect(&url).await.unwrap();
    direct
        .execute(sqlx::AssertSqlSafe(format!(
            "DROP SCHEMA IF EXISTS {schema} CASCADE"
        )))
        .await
        .unwrap();
    direct.close().await.unwrap();
    open().await
}
