//! SQLite's only writer: it takes all the work that waits, does it in one transaction, commits once, and only then
//! answers. One disk flush serves many runs.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use harness::runtime::compute::offloading;
use harness::runtime::fail_points;
use harness::runtime::tasks::{TaskKind, Tasks, panic_text};
use metrics::{gauge, histogram};
use sea_orm::{
    DatabaseConnection, DatabaseTransaction, DbErr, SqliteTransactionMode, TransactionOptions,
    TransactionTrait,
};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::disk::{Cause, DiskWatch};
use crate::error::{Fault, FromFault};
use crate::space::Class;
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
    /// What it does to the space that is used.
    fn class(&self) -> Class;
    /// The fault of its last time that may come from a lack of space.
    fn lacks_space(&self) -> Option<&Fault>;
    /// Tells the caller how it ended, given how the commit went.
    fn answer(self: Box<Self>, committed: Result<(), Fault>);
    /// Tells the caller that it was not done, or not for good.
    fn refuse(self: Box<Self>, fault: Fault);
}

type Batch = Vec<Box<dyn Job>>;

struct Waiting<A, T, E> {
    class: Class,
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
            let result = match AssertUnwindSafe((self.work)(tx, &self.args))
                .catch_unwind()
                .await
            {
                Ok(result) => result,
                Err(panic) => Err(TxError::Db(Fault::Failed(format!(
                    "the write panicked: {}",
                    panic_text(panic.as_ref())
                )))),
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

    fn class(&self) -> Class {
        self.class
    }

    fn lacks_space(&self) -> Option<&Fault> {
        match &self.result {
            Some(Err(TxError::Db(fault))) if fault.may_lack_space() => Some(fault),
            _ => None,
        }
    }

    fn refuse(self: Box<Self>, fault: Fault) {
        // A caller that went away needs no answer.
        let _ = self.caller.send(Err(TxError::Db(fault)));
    }

    fn answer(self: Box<Self>, committed: Result<(), Fault>) {
        let result = match (self.result, committed) {
            (Some(Err(TxError::Db(own))), Err(_)) => Err(TxError::Db(own)),
            // What it refused may rest on what was undone beside it.
            (_, Err(fault)) => Err(TxError::Db(fault)),
            (Some(result), Ok(())) => result,
            (None, Ok(())) => Err(TxError::Db(Fault::Failed(
                "the write was forgotten".to_owned(),
            ))),
        };
        // A caller that went away needs no answer.
        let _ = self.caller.send(result);
    }
}

/// Gives up a connection after a transaction broke, and makes a new one.
pub(crate) type Reconnect = Box<
    dyn Fn(DatabaseConnection) -> BoxFuture<'static, Result<DatabaseConnection, DbErr>>
        + Send
        + Sync,
>;

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
pub(crate) struct WriteQueue {
    jobs: mpsc::Sender<Queued>,
    low: Arc<AtomicBool>,
}

impl WriteQueue {
    /// Starts the writer. It ends when the last queue is dropped, or after the waiting work when `tasks` shuts down; `held` lives
    /// as long as it does. `disk` watches the files of a database that has some.
    pub(crate) fn start(
        connection: DatabaseConnection,
        reconnect: Reconnect,
        disk: Option<DiskWatch>,
        held: impl Any + Send,
        tasks: &Tasks,
    ) -> Self {
        let (sender, jobs) = mpsc::channel(QUEUE_LENGTH);
        let low = disk.as_ref().map(DiskWatch::low_flag).unwrap_or_default();
        let writer = Writer {
            connection,
            reconnect,
            disk,
            is_broken: false,
            stop: tasks.token().clone(),
        };
        let served = offloading(async move {
            writer.serve(jobs).await;
            drop(held);
        });
        tasks.spawn(TaskKind::Service, "sqlite writer", served);
        Self { jobs: sender, low }
    }

    /// Returns whether creations are refused for lack of space.
    pub(crate) fn is_low(&self) -> bool {
        self.low.load(Ordering::Relaxed)
    }

    /// Queues `work` and waits until it is committed or refused.
    pub(crate) async fn run<A, T, E>(
        &self,
        class: Class,
        args: A,
        work: Work<A, T, E>,
    ) -> Result<T, TxError<E>>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
        E: FromFault + Send + 'static,
    {
        let (caller, answer) = oneshot::channel();
        let closed = || TxError::Db(Fault::Unavailable("the store is shutting down".to_owned()));
        let queued: Queued = (
            InLine::new(),
            Box::new(Waiting {
                class,
                args,
                work,
                result: None,
                caller,
            }),
        );
        self.jobs.send(queued).await.map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }
}

struct Writer {
    connection: DatabaseConnection,
    reconnect: Reconnect,
    disk: Option<DiskWatch>,
    /// Whether a transaction broke the connection and no other could be made since.
    is_broken: bool,
    stop: CancellationToken,
}

impl Writer {
    async fn serve(mut self, mut jobs: mpsc::Receiver<Queued>) {
        let mut taken = Vec::with_capacity(BATCH_LENGTH);
        loop {
            let attempt = self.disk.as_ref().and_then(DiskWatch::next_attempt);
            tokio::select! {
                biased;
                () = self.stop.cancelled(), if !jobs.is_closed() => jobs.close(),
                count = jobs.recv_many(&mut taken, BATCH_LENGTH) => {
                    if count == 0 {
                        return;
                    }
                    self.write(taken.drain(..).map(|(_, job)| job).collect()).await;
                }
                () = tokio::time::sleep_until(attempt.unwrap_or_else(Instant::now)), if attempt.is_some() => self.recover().await,
            }
        }
    }

    async fn recover(&mut self) {
        if let Some(disk) = &mut self.disk {
            disk.recover(&self.connection).await;
        }
    }

    async fn write(&mut self, batch: Batch) {
        self.recover().await;
        let batch = self.admit(batch);
        let (short, fault) = self.attempt(batch).await;
        let Some(fault) = fault else { return };
        let fault = match &mut self.disk {
            None => fault,
            Some(disk) => match disk.look_into(&self.connection).await {
                Cause::RoomMade => return self.write_into_reserve(short).await,
                Cause::Fault(found) => found,
                Cause::Unknown => fault,
            },
        };
        short.into_iter().for_each(|job| job.refuse(fault.clone()));
    }

    /// Does again what found no space, as far as it may use the reserve.
    async fn write_into_reserve(&mut self, batch: Batch) {
        let batch = self.admit(batch);
        if let (short, Some(fault)) = self.attempt(batch).await {
            short.into_iter().for_each(|job| job.refuse(fault.clone()));
        }
    }

    /// Refuses what may not be written now, and gives back the rest.
    fn admit(&mut self, batch: Batch) -> Batch {
        let Some(disk) = &mut self.disk else {
            return batch;
        };
        if let Err(gone) = disk.check_files() {
            batch.into_iter().for_each(|job| job.refuse(gone.clone()));
            return Vec::new();
        }
        if !disk.is_low() {
            return batch;
        }
        let mut admitted = Vec::with_capacity(batch.len());
        for job in batch {
            match disk.admit(job.class()) {
                Ok(()) => admitted.push(job),
                Err(fault) => job.refuse(fault),
            }
        }
        admitted
    }

    /// Answers everything but what may have lacked space, which comes back with its fault.
    async fn attempt(&mut self, mut batch: Batch) -> (Batch, Option<Fault>) {
        if batch.is_empty() {
            return (batch, None);
        }
        if self.is_broken {
            self.reconnect().await;
        }
        let mut committed = self.transaction(&mut batch).await;
        if let Err(fault) = &committed {
            tracing::warn!(?fault, writes = batch.len(), "a write transaction was lost");
            self.reconnect().await;
        } else if let Some(disk) = &mut self.disk {
            // Whatever was removed while this was written: nothing is acknowledged that a restart would not find.
            committed = disk.check_files();
        }
        let mut lacking = committed
            .as_ref()
            .err()
            .filter(|fault| fault.may_lack_space())
            .cloned();
        let all = lacking.is_some();
        let mut short = Vec::new();
        for job in batch {
            let own = job.lacks_space().cloned();
            if all || (own.is_some() && committed.is_ok()) {
                lacking = lacking.or(own);
                short.push(job);
            } else {
                job.answer(committed.clone());
            }
        }
        (short, lacking)
    }

    async fn reconnect(&mut self) {
        let connected = async {
            if let Some(disk) = &self.disk {
                disk.check_before_connecting()?;
            }
            self.connection = (self.reconnect)(self.connection.clone()).await?;
            self.disk.as_mut().map_or(Ok(()), DiskWatch::connected)
        };
        let connected: Result<(), Fault> = connected.await;
        self.is_broken = connected.is_err();
        if let Err(fault) = connected {
            tracing::error!(?fault, "the database cannot be opened again");
        }
    }

    /// An error here means that nothing of the batch was written.
    async fn transaction(&self, batch: &mut [Box<dyn Job>]) -> Result<(), Fault> {
        if self.all_together(batch).await? {
            Ok(())
        } else {
            self.one_by_one(batch).await
        }
    }

    /// The usual case: nothing is refused. Otherwise everything is undone, and `false` says that the rest must be done again; work
    /// that was alone has its answer then.
    async fn all_together(&self, batch: &mut [Box<dyn Job>]) -> Result<bool, Fault> {
        let alone = batch.len() == 1;
        let tx = self.begin().await?;
        for job in batch {
            if let Verdict::Undo(fault) = job.run(&tx).await {
                // A full disk can end the transaction by itself; then there is nothing to roll back, and this is why.
                tx.rollback()
                    .await
                    .map_err(|error| fault.unwrap_or_else(|| error.into()))?;
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
                Verdict::Undo(fault) => savepoint
                    .rollback()
                    .await
                    .map_err(|error| fault.unwrap_or_else(|| error.into()))?,
            }
        }
        fail_points::pass("store.written");
        tx.commit().await?;
        fail_points::pass("store.committed");
        Ok(())
    }

    async fn begin(&self) -> Result<DatabaseTransaction, DbErr> {
        let immediate = TransactionOptions {
            sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
            ..Default::default()
        };
        self.connection.begin_with_options(immediate).await
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
