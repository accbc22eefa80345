//! Work within a transaction, and its error.

use deerflow_runtime::runs::store::StoreError;
use futures_util::future::BoxFuture;
use sea_orm::{DatabaseTransaction, DbErr};
use sqlx::PgPool;

use crate::db::error::{DbFailure, FromDbFailure};

/// Error of work in a transaction; the transaction is rolled back.
#[derive(Debug)]
pub(crate) enum TxError<E> {
    /// The database failed.
    Db(DbFailure),
    /// The work refused, with the port's error.
    Refused(E),
}

impl<E> From<DbErr> for TxError<E> {
    fn from(error: DbErr) -> Self {
        Self::Db(error.into())
    }
}

impl<E: FromDbFailure> TxError<E> {
    /// Converts to the port's error.
    pub(crate) fn into_port(self) -> E {
        match self {
            Self::Db(failure) => E::from_db_failure(failure),
            Self::Refused(error) => error,
        }
    }
}

/// Future of work within a transaction.
pub(crate) type TxFuture<'a, T, E = StoreError> = BoxFuture<'a, Result<T, TxError<E>>>;

/// Work on borrowed arguments, so that it can be retried.
pub(crate) type Work<A, T, E> = for<'a> fn(&'a DatabaseTransaction, &'a A) -> TxFuture<'a, T, E>;

/// Result of work with prepared statements or a function of the database.
pub(crate) enum Prepared<T, E> {
    /// The work is done, or refused without a change.
    Done(Result<T, E>),
    /// The work needs other statements. It has changed nothing.
    Unsuited,
}

/// The same work as a [`Work`], for usual arguments and states, in the fastest form of each
/// database. If it does not suit or the database refuses it, the [`Work`] runs instead.
pub(crate) struct FastWork<A, T, E> {
    pub(crate) sqlite: PreparedWork<A, T, E>,
    /// `None` if Postgres has no function for the work.
    pub(crate) postgres: Option<FunctionWork<A, T, E>>,
}

/// Work with prepared statements of SQLite. After an error the transaction is rolled back.
pub(crate) type PreparedWork<A, T, E> =
    fn(&rusqlite::Connection, &A) -> rusqlite::Result<Prepared<T, E>>;

/// Work by one function of Postgres, whose statement is a transaction.
pub(crate) type FunctionWork<A, T, E> =
    for<'a> fn(&'a PgPool, &'a A) -> BoxFuture<'a, sqlx::Result<Prepared<T, E>>>;
