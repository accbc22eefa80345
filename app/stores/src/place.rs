//! A place in a Postgres server, and the connection that keeps it: over it a process also says that it lives, so that requests
//! which take all other connections cannot make its lease lapse.

use std::sync::Arc;
use std::time::Duration;

use harness::runtime::runs::store::{Hold, StoreError};
use parking_lot::Mutex;
use sea_orm::{DatabaseConnection, SqlxPostgresConnector};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool};
use sqlx::{Connection, Row};

use crate::connect::asked_when_rested;
use crate::error::Fault;
use crate::tx::Writes;

/// How long the keeper of a place waits for its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlaceLimits {
    /// How long the one connection is waited for, or a new one.
    pub dial: Duration,
    /// How long a connection may take to come to rest after its use before it is given up, and the place taken again over another. A
    /// query that was given up may still be under way there, and whoever needs the one connection would wait for it.
    pub rest: Duration,
}

impl Default for PlaceLimits {
    fn default() -> Self {
        Self {
            dial: Duration::from_secs(5),
            rest: Duration::from_secs(1),
        }
    }
}

/// A session that was cut off here may live on at the server; it is told to end and gets so long for it.
const FAREWELLS: u32 = 10;
const FAREWELL: Duration = Duration::from_millis(50);

/// Ends the session that held the lock before, should the server not know that it is gone.
const END_FORMER: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND backend_start::text = $2";
const OWN_SESSION: &str =
    "SELECT pid, backend_start::text FROM pg_stat_activity WHERE pid = pg_backend_pid()";

/// Keeps a place by a lock of its one connection: whoever connects takes the lock again.
#[derive(Debug, Clone)]
pub(crate) struct Keeper {
    pool: PgPool,
    reads: DatabaseConnection,
    writes: Writes,
    lock: Arc<SessionLock>,
}

impl Keeper {
    /// Takes the place, for this process alone or beside others. What [`Keeper::hold`] says of it first is whether it did.
    pub(crate) fn new(
        options: PgConnectOptions,
        schema: Option<&str>,
        exclusive: bool,
        limits: PlaceLimits,
    ) -> Self {
        let lock = Arc::new(SessionLock::new(schema, exclusive));
        let taking = lock.clone();
        let pool = asked_when_rested()
            .max_connections(1)
            .idle_timeout(None)
            .max_lifetime(None)
            .acquire_timeout(limits.dial)
            .after_release(move |connection, _| {
                Box::pin(async move {
                    let rest = tokio::time::timeout(limits.rest, connection.ping()).await;
                    rest.unwrap_or(Err(sqlx::Error::PoolTimedOut))
                        .map(|()| true)
                })
            })
            .after_connect(move |connection, _| {
                let lock = taking.clone();
                Box::pin(async move { lock.take_again(connection).await })
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

    /// Whether the place is kept, after a word with the server.
    pub(crate) async fn hold(&self) -> Result<Hold, StoreError> {
        let held = async {
            let mut connection = self.pool.acquire().await?;
            connection.ping().await?;
            if !self.lock.state.lock().held {
                self.lock.take(&mut connection).await?;
            }
            Ok(self.lock.judge())
        };
        held.await
            .map_err(|error: sqlx::Error| Fault::from(&error).into())
    }
}

/// The advisory lock of a place. Who has it for himself keeps all others out; those who share it keep that one out.
#[derive(Debug)]
struct SessionLock {
    take: String,
    schema: String,
    state: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    held: bool,
    /// How often it was taken, and how often when it was last asked about.
    taken: u32,
    seen: u32,
    /// Process id and start of the session that took it last.
    session: Option<(i32, String)>,
}

impl SessionLock {
    fn new(schema: Option<&str>, exclusive: bool) -> Self {
        let lock = if exclusive {
            "pg_try_advisory_lock"
        } else {
            "pg_try_advisory_lock_shared"
        };
        let take = format!(
            "SELECT {lock}(hashtextextended('deerflow:' || COALESCE(current_schema(), $1), 0))"
        );
        Self {
            take,
            schema: schema.unwrap_or_default().to_owned(),
            state: Mutex::default(),
        }
    }

    /// For a new connection. One without the lock is of use, too: it tells who asks.
    async fn take_again(&self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        let former = {
            let mut state = self.state.lock();
            state.held = false;
            // Kept until another session has the lock: it may take several connections to end this one.
            state.session.clone()
        };
        let Some((process, since)) = former else {
            return self.take(connection).await;
        };
        sqlx::query(END_FORMER)
            .bind(process)
            .bind(since)
            .execute(&mut *connection)
            .await?;
        for _ in 0..FAREWELLS {
            self.take(connection).await?;
            if self.state.lock().held {
                break;
            }
            tokio::time::sleep(FAREWELL).await;
        }
        Ok(())
    }

    async fn take(&self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        let taken: bool = sqlx::query_scalar(sqlx::AssertSqlSafe(self.take.clone()))
            .bind(&self.schema)
            .fetch_one(&mut *connection)
            .await?;
        if taken {
            let own = sqlx::query(OWN_SESSION).fetch_one(connection).await?;
            let mut state = self.state.lock();
            state.held = true;
            state.taken += 1;
            state.session = Some((own.try_get(0)?, own.try_get(1)?));
        }
        Ok(())
    }

    fn judge(&self) -> Hold {
        let mut state = self.state.lock();
        let again = state.seen != state.taken;
        state.seen = state.taken;
        match (state.held, again) {
            (false, _) => Hold::Lost,
            (true, false) => Hold::Kept,
            (true, true) => Hold::Retaken,
        }
    }
}

#[cfg(test)]
#[path = "place_tests.rs"]
mod postgres_tests;
