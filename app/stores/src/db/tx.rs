//! Work within a transaction, and its error.

use deerflow_runtime::runs::store::StoreError;
use futures_util::future::BoxFuture;
use sea_orm::{DatabaseTransaction, DbErr};

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
