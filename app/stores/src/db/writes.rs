//! Write access to the database: each write is one transaction, run by the single writer (SQLite) or
//! by itself (Postgres).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deerflow_core::fail_points;
use deerflow_runtime::runs::store::StoreError;
use sea_orm::{DatabaseConnection, DbBackend, TransactionTrait};

use crate::db::error::{DbFailure, FromDbFailure};
use crate::db::space::WriteClass;
use crate::db::tx::{FastWork, FunctionWork, Prepared, TxError, Work};
use crate::db::write_queue::WriteQueue;

/// Write access to the database.
#[derive(Debug, Clone)]
pub(crate) struct Writes {
    mode: WriteMode,
    /// `true` if a write failed for lack of space and no write that needs space has succeeded
    /// since.
    was_full: Arc<AtomicBool>,
}

#[derive(Debug, Clone)]
enum WriteMode {
    /// Through the single writer (SQLite).
    Queue(WriteQueue),
    /// Each in its own transaction (Postgres, and commands on the file of a SQLite server).
    Direct(DatabaseConnection),
}

/// Maximum time that a caller waits for its write. After it, the caller does not know the outcome.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of attempts when transactions conflict.
const MAX_ATTEMPTS: u32 = 5;

impl Writes {
    /// Creates write access through the single writer.
    pub(crate) fn queued(queue: WriteQueue) -> Self {
        Self {
            mode: WriteMode::Queue(queue),
            was_full: Arc::default(),
        }
    }

    /// Returns write access whose writes do not wait for queued ones.
    pub(crate) fn urgent(&self) -> Self {
        let mode = match &self.mode {
            WriteMode::Queue(queue) => WriteMode::Queue(queue.urgent()),
            WriteMode::Direct(connection) => WriteMode::Direct(connection.clone()),
        };
        Self {
            mode,
            was_full: self.was_full.clone(),
        }
    }

    /// Creates write access with one transaction per write over `connection`.
    pub(crate) fn direct(connection: DatabaseConnection) -> Self {
        Self {
            mode: WriteMode::Direct(connection),
            was_full: Arc::default(),
        }
    }

    /// Runs `work` that continues accepted work, in one transaction. Returns when it is durable. It
    /// is refused only when very little space is free.
    pub(crate) async fn run<A, T, E>(&self, args: A, work: Work<A, T, E>) -> Result<T, E>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
        E: FromDbFailure + Send + 'static,
    {
        self.run_as(WriteClass::Progress, args, work).await
    }

    /// Runs `work` that creates data, in one transaction: it is refused while space is low.
    pub(crate) async fn create<A, T, E>(&self, args: A, work: Work<A, T, E>) -> Result<T, E>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
        E: FromDbFailure + Send + 'static,
    {
        self.run_as(WriteClass::Creation, args, work).await
    }

    /// Runs `work` that deletes data or ends work, in one transaction: it may use the last free
    /// space.
    pub(crate) async fn release<A, T, E>(&self, args: A, work: Work<A, T, E>) -> Result<T, E>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
        E: FromDbFailure + Send + 'static,
    {
        self.run_as(WriteClass::Release, args, work).await
    }

    /// Runs `work` as a write of this class.
    pub(crate) async fn run_as<A, T, E>(
        &self,
        class: WriteClass,
        args: A,
        work: Work<A, T, E>,
    ) -> Result<T, E>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
        E: FromDbFailure + Send + 'static,
    {
        self.run_fast(class, args, work, None).await
    }

    /// Runs `work` as a write of this class. `fast` is the same work in the fastest form of each
    /// database.
    pub(crate) async fn run_fast<A, T, E>(
        &self,
        class: WriteClass,
        args: A,
        work: Work<A, T, E>,
        fast: Option<FastWork<A, T, E>>,
    ) -> Result<T, E>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
        E: FromDbFailure + Send + 'static,
    {
        let outcome = async {
            match &self.mode {
                WriteMode::Queue(queue) => {
                    let prepared = fast.map(|fast| fast.sqlite);
                    queue.run(class, args, work, prepared).await
                }
                WriteMode::Direct(pool) => {
                    // A command on the file of a server writes to SQLite directly.
                    if let Some(postgres) = fast.and_then(|fast| fast.postgres)
                        && pool.get_database_backend() == DbBackend::Postgres
                        && let Some(done) = by_function(pool, &args, postgres).await
                    {
                        return done;
                    }
                    direct(pool, &args, work).await
                }
            }
        };
        match tokio::time::timeout(WRITE_TIMEOUT, outcome).await {
            Ok(result) => {
                if let Err(TxError::Db(DbFailure::Full(_))) = &result {
                    self.set_was_full(true);
                }
                result.map_err(TxError::into_port)
            }
            Err(_) => Err(E::from_db_failure(DbFailure::Unavailable(format!(
                "a write was not confirmed within {} s",
                WRITE_TIMEOUT.as_secs()
            )))),
        }
    }

    /// Returns `true` if creations are refused for lack of space.
    pub(crate) fn is_low(&self) -> bool {
        match &self.mode {
            WriteMode::Queue(queue) => queue.is_low(),
            WriteMode::Direct(_) => self.was_full(),
        }
    }

    /// Returns `true` if a write failed for lack of space and no write that needs space has
    /// succeeded since.
    pub(crate) fn was_full(&self) -> bool {
        self.was_full.load(Ordering::Relaxed)
    }

    /// Records the outcome of a write that needs space.
    pub(crate) fn set_was_full(&self, full: bool) {
        self.was_full.store(full, Ordering::Relaxed);
    }
}

/// Runs a function of the database. Returns `None` if the function does not suit or the database
/// refused it; then it has changed nothing.
async fn by_function<A, T, E>(
    pool: &DatabaseConnection,
    args: &A,
    work: FunctionWork<A, T, E>,
) -> Option<Result<T, TxError<E>>> {
    // The function's statement commits too, so a stop here is one before the commit.
    fail_points::pass("store.written");
    match work(pool.get_postgres_connection_pool(), args).await {
        Ok(Prepared::Done(result)) => {
            fail_points::pass("store.committed");
            Some(result.map_err(TxError::Refused))
        }
        Ok(Prepared::Unsuited) => None,
        Err(error) => match DbFailure::from(&error) {
            // Only a refusal by the database itself is certain to have changed nothing.
            DbFailure::Conflict(reason) | DbFailure::Failed(reason)
                if matches!(error, sqlx::Error::Database(_)) =>
            {
                tracing::debug!(
                    reason,
                    "a function refused a write, repeating it by statements"
                );
                None
            }
            failure => Some(Err(TxError::Db(failure))),
        },
    }
}

async fn direct<A, T, E>(
    pool: &DatabaseConnection,
    args: &A,
    work: Work<A, T, E>,
) -> Result<T, TxError<E>> {
    let mut attempts = 1;
    loop {
        match direct_once(pool, args, work).await {
            Err(TxError::Db(DbFailure::Conflict(reason))) if attempts < MAX_ATTEMPTS => {
                tracing::debug!(attempts, reason, "transactions conflicted, trying again");
                attempts += 1;
            }
            other => return other,
        }
    }
}

async fn direct_once<A, T, E>(
    pool: &DatabaseConnection,
    args: &A,
    work: Work<A, T, E>,
) -> Result<T, TxError<E>> {
    let tx = pool.begin().await?;
    match work(&tx, args).await {
        Ok(value) => {
            fail_points::pass("store.written");
            tx.commit().await?;
            fail_points::pass("store.committed");
            Ok(value)
        }
        Err(error) => {
            if let Err(rollback) = tx.rollback().await {
                tracing::debug!(error = %StoreError::from(DbFailure::from(rollback)), "rollback failed; the connection is dropped");
            }
            Err(error)
        }
    }
}
