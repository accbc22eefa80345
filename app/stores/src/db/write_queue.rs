//! SQLite's single writer: takes all queued work, runs it in one transaction, commits once, and
//! only then replies. One disk flush serves many runs.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;

use deerflow_core::fail_points;
use deerflow_core::tasks::{TaskKind, Tasks};
use futures_util::future::BoxFuture;
use sea_orm::{
    DatabaseConnection, DatabaseTransaction, DbErr, SqliteTransactionMode, TransactionOptions,
    TransactionTrait,
};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::db::disk_watch::{Cause, DiskWatch};
use crate::db::error::{DbFailure, FromDbFailure};
use crate::db::prepared::PreparedWriter;
use crate::db::queue_slot::QueueSlot;
use crate::db::space::WriteClass;
use crate::db::tx::{PreparedWork, TxError, Work};
use crate::db::write_job::{Batch, Job, JobOutcome, QueuedWrite};
use crate::db::writer_thread::WriterThread;

/// Callers wait while this many writes are queued.
const QUEUE_LENGTH: usize = 1024;
/// Maximum number of writes per transaction, so that the first of them does not wait long for its
/// reply.
const BATCH_LENGTH: usize = 256;

/// Closes a connection whose transaction broke, and opens a new one.
pub(crate) type Reconnect = Box<
    dyn Fn(DatabaseConnection) -> BoxFuture<'static, Result<DatabaseConnection, DbErr>>
        + Send
        + Sync,
>;

/// A queued write with its position.
type QueueEntry = (QueueSlot, Box<dyn Job>);

/// Handle of the writer.
#[derive(Debug, Clone)]
pub(crate) struct WriteQueue {
    jobs: mpsc::Sender<QueueEntry>,
    /// Writes of leases, which the writer takes before the others.
    urgent: mpsc::Sender<QueueEntry>,
    low: Arc<AtomicBool>,
}

impl WriteQueue {
    /// Starts the writer. It ends when the last handle is dropped, or, when `tasks` shuts down,
    /// after the queued work; `held` is dropped with it. `disk` watches the files of a database
    /// that has any.
    pub(crate) fn start(
        connection: DatabaseConnection,
        reconnect: Reconnect,
        prepared: Option<PreparedWriter>,
        disk: Option<DiskWatch>,
        held: impl Any + Send,
        tasks: &Tasks,
    ) -> std::io::Result<Self> {
        let (sender, jobs) = mpsc::channel(QUEUE_LENGTH);
        let (urgent, urgent_jobs) = mpsc::channel(QUEUE_LENGTH);
        let low = disk.as_ref().map(DiskWatch::low_flag).unwrap_or_default();
        let writer = Writer {
            connection,
            reconnect,
            prepared,
            disk,
            is_broken: false,
            stop: tasks.token().child_token(),
        };
        let (ended, served) = oneshot::channel();
        let stop = writer.stop.clone();
        let runtime = Handle::current();
        // A thread of its own: statements and flushes would block the tasks of another one.
        let thread = Builder::new()
            .name("sqlite-writer".to_owned())
            .spawn(move || {
                runtime.block_on(writer.serve(jobs, urgent_jobs));
                drop(held);
                // The set of tasks may be gone.
                let _ = ended.send(());
            })?;
        let thread = WriterThread {
            stop,
            thread: Some(thread),
        };
        tasks.spawn(TaskKind::Service, "sqlite writer", async move {
            // The thread ends without a message if a write panics outside of its job.
            let _ = served.await;
            drop(thread);
        });
        Ok(Self {
            jobs: sender,
            urgent,
            low,
        })
    }

    /// Returns a handle whose writes are taken before those of other handles.
    pub(crate) fn urgent(&self) -> Self {
        Self {
            jobs: self.urgent.clone(),
            ..self.clone()
        }
    }

    /// Returns `true` if creations are refused for lack of space.
    pub(crate) fn is_low(&self) -> bool {
        self.low.load(Ordering::Relaxed)
    }

    /// Queues `work` and waits until it is committed or refused. `prepared` is the same work with
    /// prepared statements.
    pub(crate) async fn run<A, T, E>(
        &self,
        class: WriteClass,
        args: A,
        work: Work<A, T, E>,
        prepared: Option<PreparedWork<A, T, E>>,
    ) -> Result<T, TxError<E>>
    where
        A: Send + Sync + 'static,
        T: Send + 'static,
        E: FromDbFailure + Send + 'static,
    {
        let (caller, reply) = oneshot::channel();
        let closed = || {
            TxError::Db(DbFailure::Unavailable(
                "the store is shutting down".to_owned(),
            ))
        };
        let queued: QueueEntry = (
            QueueSlot::new(),
            Box::new(QueuedWrite {
                class,
                args,
                work,
                prepared,
                result: None,
                caller,
            }),
        );
        self.jobs.send(queued).await.map_err(|_| closed())?;
        reply.await.map_err(|_| closed())?
    }
}

struct Writer {
    connection: DatabaseConnection,
    reconnect: Reconnect,
    /// Connection for prepared statements; a database in memory has none.
    prepared: Option<PreparedWriter>,
    disk: Option<DiskWatch>,
    /// A transaction broke the connection, and it could not be reopened yet.
    is_broken: bool,
    stop: CancellationToken,
}

impl Writer {
    async fn serve(
        mut self,
        mut jobs: mpsc::Receiver<QueueEntry>,
        mut urgent: mpsc::Receiver<QueueEntry>,
    ) {
        let mut received = Vec::with_capacity(BATCH_LENGTH);
        loop {
            let attempt = self.disk.as_ref().and_then(DiskWatch::next_attempt);
            tokio::select! {
                biased;
                () = self.stop.cancelled(), if !jobs.is_closed() => {
                    jobs.close();
                    urgent.close();
                }
                Some((_, job)) = urgent.recv() => self.write(vec![job]).await,
                count = jobs.recv_many(&mut received, BATCH_LENGTH) => {
                    if count == 0 {
                        return;
                    }
                    self.write(received.drain(..).map(|(_, job)| job).collect()).await;
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
        let batch = self.write_prepared(batch);
        let (without_space, failure) = self.attempt(batch).await;
        let Some(failure) = failure else { return };
        let failure = match &mut self.disk {
            None => failure,
            Some(disk) => match disk.diagnose(&self.connection).await {
                Cause::ReserveReleased => return self.retry_with_reserve(without_space).await,
                Cause::DbFailure(found) => found,
                Cause::Unknown => failure,
            },
        };
        without_space
            .into_iter()
            .for_each(|job| job.reject(failure.clone()));
    }

    /// Retries jobs that failed for lack of space, if their class may use the released reserve.
    async fn retry_with_reserve(&mut self, batch: Batch) {
        let batch = self.admit(batch);
        if let (without_space, Some(failure)) = self.attempt(batch).await {
            without_space
                .into_iter()
                .for_each(|job| job.reject(failure.clone()));
        }
    }

    /// Rejects jobs that may not be written now, and returns the others.
    fn admit(&mut self, batch: Batch) -> Batch {
        let Some(disk) = &mut self.disk else {
            return batch;
        };
        if let Err(gone) = disk.check_files() {
            batch.into_iter().for_each(|job| job.reject(gone.clone()));
            return Vec::new();
        }
        if !disk.is_low() {
            return batch;
        }
        let mut admitted = Vec::with_capacity(batch.len());
        for job in batch {
            match disk.admit(job.class()) {
                Ok(()) => admitted.push(job),
                Err(failure) => job.reject(failure),
            }
        }
        admitted
    }

    /// Commits the jobs that have prepared statements, and replies to their callers. Returns the
    /// others, and all jobs if a statement failed.
    fn write_prepared(&mut self, batch: Batch) -> Batch {
        let Some(prepared) = self.prepared.as_mut().filter(|_| !self.is_broken) else {
            return batch;
        };
        let (committed, others) = prepared.write(batch);
        if committed.is_empty() {
            return others;
        }
        // As in `attempt`: a write that a restart would not find must not be acknowledged.
        let checked = self.disk.as_mut().map_or(Ok(()), DiskWatch::check_files);
        if checked.is_err() {
            // It may have opened the other file, and must not write there if this one returns.
            prepared.close();
        }
        for job in committed {
            job.reply(checked.clone());
        }
        others
    }

    /// Runs a batch and replies to its callers. Returns the jobs that may have lacked space, with
    /// their failure, and does not reply to those.
    async fn attempt(&mut self, mut batch: Batch) -> (Batch, Option<DbFailure>) {
        if batch.is_empty() {
            return (batch, None);
        }
        if self.is_broken {
            self.reconnect().await;
        }
        let mut committed = self.transaction(&mut batch).await;
        if let Err(failure) = &committed {
            tracing::warn!(?failure, writes = batch.len(), "a write transaction failed");
            self.reconnect().await;
        } else if let Some(disk) = &mut self.disk {
            // The files may have been removed during the write: a write that a restart would not
            // find must not be acknowledged.
            committed = disk.check_files();
        }
        let mut space_failure = committed
            .as_ref()
            .err()
            .filter(|failure| failure.may_lack_space())
            .cloned();
        let all = space_failure.is_some();
        let mut without_space = Vec::new();
        for job in batch {
            let own = job.lacks_space().cloned();
            if all || (own.is_some() && committed.is_ok()) {
                space_failure = space_failure.or(own);
                without_space.push(job);
            } else {
                job.reply(committed.clone());
            }
        }
        (without_space, space_failure)
    }

    async fn reconnect(&mut self) {
        if let Some(prepared) = &mut self.prepared {
            prepared.close();
        }
        let connected = async {
            if let Some(disk) = &self.disk {
                disk.check_before_connecting()?;
            }
            self.connection = (self.reconnect)(self.connection.clone()).await?;
            self.disk.as_mut().map_or(Ok(()), DiskWatch::connected)
        };
        let connected: Result<(), DbFailure> = connected.await;
        self.is_broken = connected.is_err();
        if let Err(failure) = connected {
            tracing::error!(?failure, "cannot reopen the database");
        }
    }

    /// Runs a batch in a transaction. After an error, no write of the batch is stored.
    async fn transaction(&self, batch: &mut [Box<dyn Job>]) -> Result<(), DbFailure> {
        if self.commit_together(batch).await? {
            Ok(())
        } else {
            self.one_by_one(batch).await
        }
    }

    /// Runs the batch in one transaction, for the usual case that no job is refused. If a job is
    /// refused, rolls back and returns `false`: the batch must run again, one job at a time. A
    /// batch of a single job need not run again, so it returns `true`.
    async fn commit_together(&self, batch: &mut [Box<dyn Job>]) -> Result<bool, DbFailure> {
        let is_single = batch.len() == 1;
        let tx = self.begin().await?;
        for job in batch {
            if let JobOutcome::Rollback(failure) = job.run(&tx).await {
                // A full disk can end the transaction by itself. Then the rollback fails, and the
                // cause is the job's failure.
                tx.rollback()
                    .await
                    .map_err(|error| failure.unwrap_or_else(|| error.into()))?;
                return Ok(is_single);
            }
        }
        fail_points::pass("store.written");
        tx.commit().await?;
        fail_points::pass("store.committed");
        Ok(true)
    }

    /// Runs each job in a savepoint, so that refused jobs are rolled back and the others are
    /// committed.
    async fn one_by_one(&self, batch: &mut [Box<dyn Job>]) -> Result<(), DbFailure> {
        let tx = self.begin().await?;
        for job in batch {
            let savepoint = tx.begin().await?;
            match job.run(&savepoint).await {
                JobOutcome::Commit => savepoint.commit().await?,
                // A full disk can end the whole transaction. Then the savepoint no longer exists,
                // and the failure is the cause.
                JobOutcome::Rollback(failure) => savepoint
                    .rollback()
                    .await
                    .map_err(|error| failure.unwrap_or_else(|| error.into()))?,
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
#[path = "write_queue_tests.rs"]
mod tests;
