//! Session lock on a Postgres database and schema, and the connection that holds it. Leases are
//! renewed over the same connection, so that requests which use all other connections cannot make a
//! lease expire.

use std::sync::Arc;
use std::time::Duration;

use deerflow_runtime::runs::store::{StoreError, StoreLockStatus};
use parking_lot::Mutex;
use sea_orm::{DatabaseConnection, SqlxPostgresConnector};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool};
use sqlx::{Connection, Row};

use crate::db::error::DbFailure;
use crate::db::pool::pool_with_idle_check;
use crate::db::writes::Writes;

/// Timeouts of the session lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLockTimeouts {
    /// Time to wait for the connection, or for a new one.
    pub connect: Duration,
    /// Time that a connection may take to become idle after use. After it, the connection is
    /// dropped, and the lock is acquired over another. Otherwise the next caller could wait for a
    /// cancelled query that still runs on it.
    pub release: Duration,
}

impl Default for SessionLockTimeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            release: Duration::from_secs(1),
        }
    }
}

/// After a disconnect, the former session may still exist on the server. It is terminated and
/// checked this many times.
const TERMINATE_ATTEMPTS: u32 = 10;
const TERMINATE_INTERVAL: Duration = Duration::from_millis(50);

/// Terminates the session that held the lock before, because the server may not have noticed that
/// its client disconnected.
const TERMINATE_FORMER_SESSION: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND backend_start::text = $2";
const OWN_SESSION: &str =
    "SELECT pid, backend_start::text FROM pg_stat_activity WHERE pid = pg_backend_pid()";

/// Holds the session lock with its single connection. Every new connection acquires the lock again.
#[derive(Debug, Clone)]
pub(crate) struct ExclusiveSession {
    pool: PgPool,
    reads: DatabaseConnection,
    writes: Writes,
    lock: Arc<SessionLock>,
}

impl ExclusiveSession {
    /// Starts to acquire the lock, exclusive or shared. The first [`ExclusiveSession::hold`]
    /// reports whether that succeeded.
    pub(crate) fn new(
        options: PgConnectOptions,
        schema: Option<&str>,
        exclusive: bool,
        limits: SessionLockTimeouts,
    ) -> Self {
        let lock = Arc::new(SessionLock::new(schema, exclusive));
        let acquiring = lock.clone();
        let pool = pool_with_idle_check()
            .max_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            .acquire_timeout(limits.connect)
            .after_release(move |connection, _| {
                Box::pin(async move {
                    let rest = tokio::time::timeout(limits.release, connection.ping()).await;
                    rest.unwrap_or(Err(sqlx::Error::PoolTimedOut))
                        .map(|()| true)
                })
            })
            .after_connect(move |connection, _| {
                let lock = acquiring.clone();
                Box::pin(async move { lock.reacquire(connection).await })
            })
            .connect_lazy_with(options);
        let reads = SqlxPostgresConnector::from_sqlx_postgres_pool(pool.clone());
        Self {
            writes: Writes::direct(reads.clone()),
            reads,
            pool,
            lock,
        }
    }

    pub(crate) fn reads(&self) -> &DatabaseConnection {
        &self.reads
    }

    pub(crate) fn writes(&self) -> &Writes {
        &self.writes
    }

    /// Checks with the server that the lock is held.
    pub(crate) async fn hold(&self) -> Result<StoreLockStatus, StoreError> {
        let session = async {
            let mut connection = self.pool.acquire().await?;
            connection.ping().await?;
            if !self.lock.state.lock().held {
                self.lock.acquire(&mut connection).await?;
            }
            Ok(self.lock.status())
        };
        session
            .await
            .map_err(|error: sqlx::Error| DbFailure::from(&error).into())
    }
}

/// Advisory lock of a database and schema. An exclusive holder excludes all others; shared holders
/// exclude an exclusive one.
#[derive(Debug)]
struct SessionLock {
    lock_sql: String,
    schema: String,
    state: Mutex<LockState>,
}

#[derive(Debug, Default)]
struct LockState {
    held: bool,
    /// Number of acquisitions so far, and its value at the last check.
    acquired: u32,
    checked: u32,
    /// Process id and start time of the session that acquired it last.
    session: Option<(i32, String)>,
}

impl SessionLock {
    fn new(schema: Option<&str>, exclusive: bool) -> Self {
        let lock = if exclusive {
            "pg_try_advisory_lock"
        } else {
            "pg_try_advisory_lock_shared"
        };
        let lock_sql = format!(
            "SELECT {lock}(hashtextextended('deerflow:' || COALESCE(current_schema(), $1), 0))"
        );
        Self {
            lock_sql,
            schema: schema.unwrap_or_default().to_owned(),
            state: Mutex::default(),
        }
    }

    /// Acquires the lock over a new connection. A connection without the lock is usable too: it
    /// reports the loss to callers.
    async fn reacquire(&self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        let former = {
            let mut state = self.state.lock();
            state.held = false;
            // The former session is remembered until another session has the lock: its termination
            // may take several connections.
            state.session.clone()
        };
        let Some((process, since)) = former else {
            return self.acquire(connection).await;
        };
        sqlx::query(TERMINATE_FORMER_SESSION)
            .bind(process)
            .bind(since)
            .execute(&mut *connection)
            .await?;
        for _ in 0..TERMINATE_ATTEMPTS {
            self.acquire(connection).await?;
            if self.state.lock().held {
                break;
            }
            tokio::time::sleep(TERMINATE_INTERVAL).await;
        }
        Ok(())
    }

    async fn acquire(&self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        let acquired: bool = sqlx::query_scalar(sqlx::AssertSqlSafe(self.lock_sql.clone()))
            .bind(&self.schema)
            .fetch_one(&mut *connection)
            .await?;
        if acquired {
            let own = sqlx::query(OWN_SESSION).fetch_one(connection).await?;
            let mut state = self.state.lock();
            state.held = true;
            state.acquired += 1;
            state.session = Some((own.try_get(0)?, own.try_get(1)?));
        }
        Ok(())
    }

    fn status(&self) -> StoreLockStatus {
        let mut state = self.state.lock();
        let again = state.checked != state.acquired;
        state.checked = state.acquired;
        match (state.held, again) {
            (false, _) => StoreLockStatus::Lost,
            (true, false) => StoreLockStatus::Kept,
            (true, true) => StoreLockStatus::Retaken,
        }
    }
}

#[cfg(test)]
#[path = "session_lock_tests.rs"]
mod postgres_tests;
