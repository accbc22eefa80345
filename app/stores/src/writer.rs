//! SQLite's only writer: it takes all the work that waits, does it in one transaction with a savepoint each, commits once, and
//! only then answers. One disk flush serves many runs.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use harness::runtime::tasks::{TaskKind, Tasks, panic_text};
use sea_orm::{DatabaseConnection, DatabaseTransaction, DbErr, SqliteTransactionMode, TransactionOptions, TransactionTrait};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::error::{Fault, FromFault};
use crate::tx::{TxError, Work};

/// Callers wait beyond this many queued writes.
const QUEUE_LENGTH: usize = 1024;
/// Most writes in one transaction, so that the first of them does not wait long for its answer.
const BATCH_LENGTH: usize = 256;

/// Tells the caller how its work ended, given how the commit went.
type Answer = Box<dyn FnOnce(Result<(), Fault>) + Send>;

/// What became of a piece of work before the commit.
struct Done {
    keep: bool,
    /// What the database did to it, if that is why it is not kept.
    fault: Option<Fault>,
    answer: Answer,
}

/// A piece of work that waits, whatever its types.
trait Job: Send {
    /// Does it.
    fn run<'a>(self: Box<Self>, tx: &'a DatabaseTransaction) -> BoxFuture<'a, Done>;
    /// Answers that it was not begun.
    fn refuse(self: Box<Self>, fault: Fault);
}

struct Waiting<A, T, E> {
    args: A,
    work: Work<A, T, E>,
    caller: oneshot::Sender<Result<T, TxError<E>>>,
}

impl<A, T, E> Job for Waiting<A, T, E>
where
    A: Send + Sync + 'static,
    T: Send + 'static,
    E: Send + 'static,
{
    fn run<'a>(self: Box<Self>, tx: &'a DatabaseTransaction) -> BoxFuture<'a, Done> {
        let Self { args, work, caller } = *self;
        Box::pin(async move {
            let result = match AssertUnwindSafe(work(tx, &args)).catch_unwind().await {
                Ok(result) => result,
                Err(panic) => Err(TxError::Db(Fault::Failed(format!("the write panicked: {}", panic_text(panic.as_ref()))))),
            };
            let keep = result.is_ok();
            let fault = match &result {
                Err(TxError::Db(fault)) => Some(fault.clone()),
                _ => None,
            };
            let answer = Box::new(move |committed| {
                let result = match committed {
                    Err(fault) if keep => Err(TxError::Db(fault)),
                    _ => result,
                };
                // A caller that went away needs no answer.
                let _ = caller.send(result);
            });
            Done { keep, fault, answer }
        })
    }

    fn refuse(self: Box<Self>, fault: Fault) {
        let _ = self.caller.send(Err(TxError::Db(fault)));
    }
}

/// Gives up a connection after a transaction broke, and makes a new one.
pub(crate) type Reconnect = Box<dyn Fn(DatabaseConnection) -> BoxFuture<'static, Result<DatabaseConnection, DbErr>> + Send + Sync>;

/// The way to the writer.
#[derive(Debug, Clone)]
pub(crate) struct WriteQueue(mpsc::Sender<Box<dyn Job>>);

impl WriteQueue {
    /// Starts the writer. It ends when the last queue is dropped, or after the waiting work when `tasks` shuts down; `held` lives
    /// as long as it does.
    pub(crate) fn start(connection: DatabaseConnection, reconnect: Reconnect, held: impl Any + Send, tasks: &Tasks) -> Self {
        let (sender, jobs) = mpsc::channel(QUEUE_LENGTH);
        let writer = Writer { connection, reconnect, stop: tasks.token().clone() };
        tasks.spawn(TaskKind::Service, "sqlite writer", async move {
            writer.serve(jobs).await;
            drop(held);
        });
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
        self.0.send(Box::new(Waiting { args, work, caller })).await.map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }
}

struct Writer {
    connection: DatabaseConnection,
    reconnect: Reconnect,
    stop: CancellationToken,
}

impl Writer {
    async fn serve(mut self, mut jobs: mpsc::Receiver<Box<dyn Job>>) {
        let mut batch = Vec::with_capacity(BATCH_LENGTH);
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled(), if !jobs.is_closed() => jobs.close(),
                taken = jobs.recv_many(&mut batch, BATCH_LENGTH) => {
                    if taken == 0 {
                        return;
                    }
                    self.write(&mut batch).await;
                }
            }
        }
    }

    async fn write(&mut self, batch: &mut Vec<Box<dyn Job>>) {
        let mut answers = Vec::with_capacity(batch.len());
        let mut waiting = batch.drain(..);
        let committed = self.transaction(&mut waiting, &mut answers).await;
        if let Err(fault) = &committed {
            tracing::warn!(?fault, writes = answers.len(), "a write transaction was lost");
            waiting.for_each(|job| job.refuse(fault.clone()));
            match (self.reconnect)(self.connection.clone()).await {
                Ok(connection) => self.connection = connection,
                Err(error) => tracing::error!(fault = ?Fault::from(error), "the database cannot be opened again"),
            }
        }
        for answer in answers {
            answer(committed.clone());
        }
    }

    /// An error here means that nothing of the batch was written.
    async fn transaction(&self, waiting: &mut std::vec::Drain<'_, Box<dyn Job>>, answers: &mut Vec<Answer>) -> Result<(), Fault> {
        let immediate = TransactionOptions { sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate), ..Default::default() };
        let tx = self.connection.begin_with_options(immediate).await?;
        if waiting.len() == 1 {
            // Alone, it needs no savepoint: refused work takes the transaction with it.
            for job in waiting {
                let done = job.run(&tx).await;
                answers.push(done.answer);
                if !done.keep {
                    return Ok(tx.rollback().await?);
                }
            }
            return Ok(tx.commit().await?);
        }
        for job in waiting {
            let savepoint = tx.begin().await?;
            let done = job.run(&savepoint).await;
            answers.push(done.answer);
            if done.keep {
                savepoint.commit().await?;
            } else {
                // A full disk can end the whole transaction at once; then there is no savepoint any more, and this is why.
                savepoint.rollback().await.map_err(|error| done.fault.unwrap_or_else(|| error.into()))?;
            }
        }
        Ok(tx.commit().await?)
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
