//! Lock of a text until the end of a transaction.

use sea_orm::{ConnectionTrait, DatabaseTransaction, DbBackend, DbErr, Statement};

/// Serializes the transactions that name the same text: they count or replace rows, which no row
/// lock protects. SQLite has a single writer anyway.
pub(crate) async fn lock_text(tx: &DatabaseTransaction, text: &str) -> Result<(), DbErr> {
    const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";
    let backend = tx.get_database_backend();
    if backend == DbBackend::Postgres {
        let statement = Statement::from_sql_and_values(backend, LOCK, [text.into()]);
        tx.execute_raw(statement).await?;
    }
    Ok(())
}
