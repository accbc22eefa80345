//! Options of connections and pools, for SQLite and Postgres.

use std::time::Duration;

use secrecy::ExposeSecret;
use sqlx::ConnectOptions;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};

use crate::db::config::{OpenError, PostgresConfig};

/// Time that SQLite waits for a lock of another program.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// Time that a caller waits for a connection.
pub(crate) const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit of a statement on Postgres, including lock waits, in milliseconds.
const STATEMENT_TIMEOUT_MS: &str = "20000";
/// A Postgres connection that was idle for longer is checked before use. A restart of the server
/// takes longer than this. A session that was terminated while its server continued to run may be
/// used unchecked within this time.
const IDLE_CHECK_AFTER: Duration = Duration::from_millis(100);

/// Returns pool options that check an idle connection before use: that it is alive, and that its
/// server accepts writes, because after a failover the former primary may answer as a standby.
/// Connections that were used a moment ago are not checked: a check before every use would double
/// the round trips.
pub(crate) fn pool_with_idle_check() -> PgPoolOptions {
    PgPoolOptions::new()
        .test_before_acquire(false)
        .before_acquire(|connection, used| {
            Box::pin(async move {
                Ok(used.idle_for <= IDLE_CHECK_AFTER
                    || !sqlx::query_scalar::<_, bool>("SELECT pg_is_in_recovery()")
                        .fetch_one(connection)
                        .await?)
            })
        })
}

/// Makes acknowledged commits durable, regardless of the default of the role or the database.
/// Stricter settings are retained.
pub(crate) const ENABLE_SYNCHRONOUS_COMMIT: &str = "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'";

/// Returns the connection options, or an error if the settings are not valid.
pub(crate) fn postgres_options(config: &PostgresConfig) -> Result<PgConnectOptions, OpenError> {
    let options: PgConnectOptions = config.url.expose_secret().parse().map_err(|_| {
        OpenError::Settings("the url must be postgres://user:password@host:port/database")
    })?;
    let mut options = options
        .disable_statement_logging()
        .application_name("deerflow")
        .options([
            ("statement_timeout", STATEMENT_TIMEOUT_MS),
            ("idle_in_transaction_session_timeout", STATEMENT_TIMEOUT_MS),
        ])
        // A generic plan chooses a filter that matches all threads over one that matches few: half
        // a second instead of six milliseconds with 100,000 threads.
        .options([("plan_cache_mode", "force_custom_plan")])
        // Cost of a random page read. The default is for spinning disks, and makes Postgres collect
        // and sort a thread's messages although its key returns them in order.
        .options([("random_page_cost", "1.1")]);
    if let Some(schema) = &config.schema {
        if schema.is_empty()
            || !schema
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            return Err(OpenError::Settings(
                "a schema name has only letters, digits and underscores",
            ));
        }
        options = options.options([("search_path", schema.as_str())]);
    }
    Ok(options)
}

pub(crate) fn sqlite_options() -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT)
        .statement_cache_capacity(256)
        .disable_statement_logging()
}

pub(crate) fn sqlite_pool(connections: u32) -> SqlitePoolOptions {
    // A connection to a file cannot break between two uses, so it is not checked before each.
    SqlitePoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .max_lifetime(None)
        .test_before_acquire(false)
}

/// Returns pool options that do not close the writer's connection when it is idle: with the last
/// connection SQLite would remove the WAL, whose identity is checked.
pub(crate) fn writer_pool() -> SqlitePoolOptions {
    sqlite_pool(1).idle_timeout(None)
}
