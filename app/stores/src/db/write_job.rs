//! One queued write: its work, its result, and the reply to its caller.

use std::panic::AssertUnwindSafe;

use deerflow_core::tasks::panic_text;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sea_orm::DatabaseTransaction;
use tokio::sync::oneshot;

use crate::db::error::DbFailure;
use crate::db::space::WriteClass;
use crate::db::tx::{Prepared, PreparedWork, TxError, Work};

/// Decision about the writes of a job.
pub(crate) enum JobOutcome {
    Commit,
    /// The work refused, or the database failed with this failure.
    Rollback(Option<DbFailure>),
}

/// A queued write, independent of its types.
pub(crate) trait Job: Send {
    /// Runs the work. It may run again from the start after a rollback.
    fn run<'a>(&'a mut self, tx: &'a DatabaseTransaction) -> BoxFuture<'a, JobOutcome>;
    /// Returns `true` if the work may run with prepared statements.
    fn is_prepared(&self) -> bool;
    /// Runs the work with prepared statements. Returns `false` if it needs others; then it has
    /// changed nothing.
    fn run_prepared(&mut self, connection: &rusqlite::Connection) -> rusqlite::Result<bool>;
    /// Returns the effect on the used space.
    fn class(&self) -> WriteClass;
    /// Returns the failure of the last run if a lack of space may have caused it.
    fn lacks_space(&self) -> Option<&DbFailure>;
    /// Sends the result of the work to the caller, or the failure of the commit.
    fn reply(self: Box<Self>, committed: Result<(), DbFailure>);
    /// Reports to the caller that the work was not run, or not committed.
    fn reject(self: Box<Self>, failure: DbFailure);
}

pub(crate) type Batch = Vec<Box<dyn Job>>;

pub(crate) struct QueuedWrite<A, T, E> {
    pub(crate) class: WriteClass,
    pub(crate) args: A,
    pub(crate) work: Work<A, T, E>,
    pub(crate) prepared: Option<PreparedWork<A, T, E>>,
    /// Result of the last run.
    pub(crate) result: Option<Result<T, TxError<E>>>,
    pub(crate) caller: oneshot::Sender<Result<T, TxError<E>>>,
}

impl<A, T, E> Job for QueuedWrite<A, T, E>
where
    A: Send + Sync + 'static,
    T: Send + 'static,
    E: Send + 'static,
{
    fn run<'a>(&'a mut self, tx: &'a DatabaseTransaction) -> BoxFuture<'a, JobOutcome> {
        Box::pin(async move {
            let result = match AssertUnwindSafe((self.work)(tx, &self.args))
                .catch_unwind()
                .await
            {
                Ok(result) => result,
                Err(panic) => Err(TxError::Db(DbFailure::Failed(format!(
                    "the write panicked: {}",
                    panic_text(panic.as_ref())
                )))),
            };
            let outcome = match &result {
                Ok(_) => JobOutcome::Commit,
                Err(TxError::Db(failure)) => JobOutcome::Rollback(Some(failure.clone())),
                Err(TxError::Refused(_)) => JobOutcome::Rollback(None),
            };
            self.result = Some(result);
            outcome
        })
    }

    fn is_prepared(&self) -> bool {
        self.prepared.is_some()
    }

    fn run_prepared(&mut self, connection: &rusqlite::Connection) -> rusqlite::Result<bool> {
        let Some(work) = self.prepared else {
            return Ok(false);
        };
        let Prepared::Done(result) = work(connection, &self.args)? else {
            return Ok(false);
        };
        self.result = Some(result.map_err(TxError::Refused));
        Ok(true)
    }

    fn class(&self) -> WriteClass {
        self.class
    }

    fn lacks_space(&self) -> Option<&DbFailure> {
        match &self.result {
            Some(Err(TxError::Db(failure))) if failure.may_lack_space() => Some(failure),
            _ => None,
        }
    }

    fn reject(self: Box<Self>, failure: DbFailure) {
        // The caller may no longer wait.
        let _ = self.caller.send(Err(TxError::Db(failure)));
    }

    fn reply(self: Box<Self>, committed: Result<(), DbFailure>) {
        let Self {
            args,
            result,
            caller,
            ..
        } = *self;
        // The caller may own the rest of what they share, and free it once it has the reply.
        drop(args);
        let result = match (result, committed) {
            (Some(Err(TxError::Db(own))), Err(_)) => Err(TxError::Db(own)),
            // A refusal may depend on other work that was rolled back with it.
            (_, Err(failure)) => Err(TxError::Db(failure)),
            (Some(result), Ok(())) => result,
            (None, Ok(())) => Err(TxError::Db(DbFailure::Failed(
                "the write was not run".to_owned(),
            ))),
        };
        // The caller may no longer wait.
        let _ = caller.send(result);
    }
}
