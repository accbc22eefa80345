//! SQLite's only writer: it takes all the work that waits, does it in one transaction, commits once, and only then
//! answers. One disk flush serves many runs.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use harness::runtime::compute::offloading;
use harness::runtime::fail_points;
use harness::runtime::tasks::{TaskKind, Tasks, panic_text};
use metrics::{gauge, histogram};
use sea_orm::{DatabaseConnection, DatabaseTransaction, DbErr, SqliteTransactionMode, TransactionOptions, TransactionTrait};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::error::{Fault, FromFault};
use crate::tx::{TxError, Work};

/// Callers wait beyond this many queued writes.
const QUEUE_LENGTH: usize = 1024;
/// Most writes in one transaction, so that the first of them does not wait long for its answer.
const BATCH_LENGTH: usize = 256;

/// Whether what a piece of work wrote may stay.
enum Verdict {
    Keep,
    /// It refused, or the database failed it in this way.
    Undo(Option<Fault>),
}

/// A piece of work that waits, whatever its types.
trait Job: Send {
    /// Does it. It may be done again from the start after a rollback.
    fn run<'a>(&'a mut self, tx: &'a DatabaseTransaction) -> BoxFuture<'a, Verdict>;
    /// Tells the caller how it ended, given how the commit went.
    fn answer(self: Box<Self>, committed: Result<(), Fault>);
}

struct Waiting<A, T, E> {
    args: A,
    work: Work<A, T, E>,
    /// How it went the last time it was done.
    result: Option<Result<T, TxError<E>>>,
    caller: oneshot::Sender<Result<T, TxError<E>>>,
}

impl<A, T, E> Job for Waiting<A, T, E>
where
    A: Send + Sync + 'static,
    T: Send + 'static,
    E: Send + 'static,
{
    fn run<'a>(&'a mut self, tx: &'a DatabaseTransaction) -> BoxFuture<'a, Verdict> {
        Box::pin(async move {
            let result = match AssertUnwindSafe((self.work)(tx, &self.args)).catch_unwind().await {
                Ok(result) => result,
                Err(panic) => Err(TxError::Db(Fault::Failed(format!("the write panicked: {}", panic_text(panic.as_ref()))))),
            };
            let verdict = match &result {
                Ok(_) => Verdict::Keep,
                Err(TxError::Db(fault)) => Verdict::Undo(Some(fault.clone())),
                Err(TxError::Refused(_)) => Verdict::Undo(None),
            };
            self.result = Some(result);
            verdict
        })
    }

    fn answer(self: Box<Self>, committed: Result<(), Fault>) {
        let result = match (self.result, committed) {
            (Some(Err(TxError::Db(own))), Err(_)) => Err(TxError::Db(own)),
            // What it refused may rest on what was undone beside it.
            (_, Err(fault)) => Err(TxError::Db(fault)),
            (Some(result), Ok(())) => result,
            (None, Ok(())) => Err(TxError::Db(Fault::Failed("the write was forgotten".to_owned()))),
        };
        // A caller that went away needs no answer.
        let _ = self.caller.send(result);
    }
}

/// Gives up a connection after a transaction broke, and makes a new one.
pub(crate) type Reconnect = Box<dyn Fn(DatabaseConnection) -> BoxFuture<'static, Result<DatabaseConnection, DbErr>> + Send + Sync>;

/// A place in the line before the writer, which figures tell of as long as it is taken.
struct InLine(Instant);

impl InLine {
    fn new() -> Self {
        gauge!("deerflow_write_queue_depth").increment(1.0);
        Self(Instant::now())
    }
}

impl Drop for InLine {
    fn drop(&mut self) {
        gauge!("deerflow_write_queue_depth").decrement(1.0);
        histogram!("deerflow_write_queue_seconds").record(self.0.elapsed());
    }
}

/// Work in the line.
type Queued = (InLine, Box<dyn Job>);

/// The way to the writer.
#[derive(Debug, Clone)]
pub(crate) struct WriteQueue(mpsc::Sender<Queued>);

impl WriteQueue {
    /// Starts the writer. It ends when the last queue is dropped, or after the waiting work when `tasks` shuts down; `held` lives
    /// as long as it does.
    pub(crate) fn start(connection: DatabaseConnection, reconnect: Reconnect, held: impl Any + Send, tasks: &Tasks) -> Self {
        let (sender, jobs) = mpsc::channel(QUEUE_LENGTH);
        let writer = Writer { connection, reconnect, stop: tasks.token().clone() };
        let served = offloading(async move {
            writer.serve(jobs).await;
            drop(held);
        });
        tasks.spawn(TaskKind::Service, "sqlite writer", served);
        Self(sender)
    }

    /// Queues `work` and waits until it is committed or refused.
    pub(crate) async fn run<A, T, E>(&self, args: A, work: Work<A, T, E>) -> Result<T, TxError<E>>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
        E: FromFault + Send + 'static,
    {
        let (caller, answer) = oneshot::channel();
        let closed = || TxError::Db(Fault::Unavailable("the store is shutting down".to_owned()));
        let queued: Queued = (InLine::new(), Box::new(Waiting { args, work, result: None, caller }));
        self.0.send(queued).await.map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }
}

struct Writer {
    connection: DatabaseConnection,
    reconnect: Reconnect,
    stop: CancellationToken,
}

impl Writer {
    async fn serve(mut self, mut jobs: mpsc::Receiver<Queued>) {
        let mut taken = Vec::with_capacity(BATCH_LENGTH);
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled(), if !jobs.is_closed() => jobs.close(),
                count = jobs.recv_many(&mut taken, BATCH_LENGTH) => {
                    if count == 0 {
                        return;
                    }
                    self.write(taken.drain(..).map(|(_, job)| job).collect()).await;
                }
            }
        }
    }

    async fn write(&mut self, mut batch: Vec<Box<dyn Job>>) {
        let committed = self.transaction(&mut batch).await;
        if let Err(fault) = &committed {
            tracing::warn!(?fault, writes = batch.len(), "a write transaction was lost");
            match (self.reconnect)(self.connection.clone()).await {
                Ok(connection) => self.connection = connection,
                Err(error) => tracing::error!(fault = ?Fault::from(error), "the database cannot be opened again"),
            }
        }
        for job in batch {
            job.answer(committed.clone());
        }
    }

    /// An error here means that nothing of the batch was written.
    async fn transaction(&self, batch: &mut [Box<dyn Job>]) -> Result<(), Fault> {
        if self.all_together(batch).await? { Ok(()) } else { self.one_by_one(batch).await }
    }

    /// The usual case: nothing is refused. Otherwise everything is undone, and `false` says that the rest must be done again; work
    /// that was alone has its answer then.
    async fn all_together(&self, batch: &mut [Box<dyn Job>]) -> Result<bool, Fault> {
        let alone = batch.len() == 1;
        let tx = self.begin().await?;
        for job in batch {
            if let Verdict::Undo(fault) = job.run(&tx).await {
                // A full disk can end the transaction by itself; then there is nothing to roll back, and this is why.
                tx.rollback().await.map_err(|error| fault.unwrap_or_else(|| error.into()))?;
                return Ok(alone);
            }
        }
        fail_points::pass("store.written");
        tx.commit().await?;
        fail_points::pass("store.committed");
        Ok(true)
    }

    /// With a savepoint for each piece of work, so that the refused ones go and the others stay.
    async fn one_by_one(&self, batch: &mut [Box<dyn Job>]) -> Result<(), Fault> {
        let tx = self.begin().await?;
        for job in batch {
            let savepoint = tx.begin().await?;
            match job.run(&savepoint).await {
                Verdict::Keep => savepoint.commit().await?,
                // A full disk can end the whole transaction at once; then there is no savepoint any more, and this is why.
                Verdict::Undo(fault) => savepoint.rollback().await.map_err(|error| fault.unwrap_or_else(|| error.into()))?,
            }
        }
        fail_points::pass("store.written");
        tx.commit().await?;
        fail_points::pass("store.committed");
        Ok(())
    }

    async fn begin(&self) -> Result<DatabaseTransaction, DbErr> {
        let immediate = TransactionOptions { sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate), ..Default::default() };
        self.connection.begin_with_options(immediate).await
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
