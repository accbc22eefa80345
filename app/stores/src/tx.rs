//! The one way to write: work that is given a transaction, and the two ways a database runs it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use harness::runtime::fail_points;
use harness::runtime::runs::store::StoreError;
use sea_orm::{DatabaseConnection, DatabaseTransaction, DbErr, TransactionTrait};

use crate::error::{Fault, FromFault};
use crate::space::Class;
use crate::writer::WriteQueue;

/// Why work in a transaction did not succeed; the transaction is rolled back.
#[derive(Debug)]
pub(crate) enum TxError<E> {
    /// The database failed.
    Db(Fault),
    /// The work itself refused.
    Refused(E),
}

impl<E> From<DbErr> for TxError<E> {
    fn from(error: DbErr) -> Self {
        Self::Db(error.into())
    }
}

impl<E: FromFault> TxError<E> {
    /// The port's error.
    pub(crate) fn into_port(self) -> E {
        match self {
            Self::Db(fault) => E::from_fault(fault),
            Self::Refused(error) => error,
        }
    }
}

/// Work on borrowed arguments, so that it can be done again.
pub(crate) type Work<A, T, E> =
    for<'a> fn(&'a DatabaseTransaction, &'a A) -> BoxFuture<'a, Result<T, TxError<E>>>;

/// How writes reach the database.
#[derive(Debug, Clone)]
pub(crate) struct Writes {
    way: Way,
    /// Whether the database refused a write for want of space, and none that needs space has succeeded since.
    was_full: Arc<AtomicBool>,
}

#[derive(Debug, Clone)]
enum Way {
    /// Through the only writer (SQLite).
    Queue(WriteQueue),
    /// Each in a transaction of its own (Postgres).
    Direct(DatabaseConnection),
}

/// The longest a caller waits for its write. After that the outcome is unknown to it.
const WRITE_LIMIT: Duration = Duration::from_secs(30);
/// How often work is done again when transactions got in each other's way.
const MOST_TRIES: u32 = 5;

impl Writes {
    /// Writes through the only writer.
    pub(crate) fn queued(queue: WriteQueue) -> Self {
        Self {
            way: Way::Queue(queue),
            was_full: Arc::default(),
        }
    }

    /// Writes in a transaction of their own over `connection`.
    pub(crate) fn direct(connection: DatabaseConnection) -> Self {
        Self {
            way: Way::Direct(connection),
            was_full: Arc::default(),
        }
    }

    /// Runs `work`, which belongs to something that was accepted before, in one transaction and returns when it is durable.
    pub(crate) async fn run<A, T, E>(&self, args: A, work: Work<A, T, E>) -> Result<T, E>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
        E: FromFault + Send + 'static,
    {
        self.run_as(Class::Progress, args, work).await
    }

    /// Runs `work`, which makes something new: it is refused while space is low.
    pub(crate) async fn create<A, T, E>(&self, args: A, work: Work<A, T, E>) -> Result<T, E>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
        E: FromFault + Send + 'static,
    {
        self.run_as(Class::Creation, args, work).await
    }

    /// Runs `work`, which deletes or ends something: it may use the last of the space.
    pub(crate) async fn release<A, T, E>(&self, args: A, work: Work<A, T, E>) -> Result<T, E>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
        E: FromFault + Send + 'static,
    {
        self.run_as(Class::Release, args, work).await
    }

    /// Runs `work` of such a class.
    pub(crate) async fn run_as<A, T, E>(
        &self,
        class: Class,
        args: A,
        work: Work<A, T, E>,
    ) -> Result<T, E>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
        E: FromFault + Send + 'static,
    {
        let done = async {
            match &self.way {
                Way::Queue(queue) => queue.run(class, args, work).await,
                Way::Direct(pool) => direct(pool, &args, work).await,
            }
        };
        match tokio::time::timeout(WRITE_LIMIT, done).await {
            Ok(result) => {
                if let Err(TxError::Db(Fault::Full(_))) = &result {
                    self.set_was_full(true);
                }
                result.map_err(TxError::into_port)
            }
            Err(_) => Err(E::from_fault(Fault::Unavailable(format!(
                "a write was not confirmed within {} s",
                WRITE_LIMIT.as_secs()
            )))),
        }
    }

    /// Returns whether creations are refused for lack of space.
    pub(crate) fn is_low(&self) -> bool {
        match &self.way {
            Way::Queue(queue) => queue.is_low(),
            Way::Direct(_) => self.was_full(),
        }
    }

    /// Returns whether a write found no space and none that needs space has succeeded since.
    pub(crate) fn was_full(&self) -> bool {
        self.was_full.load(Ordering::Relaxed)
    }

    /// Says how a write that needs space went.
    pub(crate) fn set_was_full(&self, full: bool) {
        self.was_full.store(full, Ordering::Relaxed);
    }
}

async fn direct<A, T, E>(
    pool: &DatabaseConnection,
    args: &A,
    work: Work<A, T, E>,
) -> Result<T, TxError<E>> {
    let mut tries = 1;
    loop {
        match direct_once(pool, args, work).await {
            Err(TxError::Db(Fault::Conflict(reason))) if tries < MOST_TRIES => {
                tracing::debug!(tries, reason, "transaction conflicted, trying again");
                tries += 1;
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
                tracing::debug!(error = %StoreError::from(Fault::from(rollback)), "rollback failed; the connection is dropped");
            }
            Err(error)
        }
    }
}
