//! Deletion of old checkpoints.

use deerflow_core::ids::ThreadId;
use deerflow_runtime::checkpoint::{CheckpointError, HistoryRetention};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, EntityTrait, QueryFilter, Statement, Value,
};

use crate::db::connect::Database;
use crate::db::entity::{micros, run, thread};
use crate::db::error::read_checkpoints;
use crate::db::tx::TxError;

/// Checkpoints that are not retained and are not the parent of a retained one, oldest first.
macro_rules! expired_checkpoints {
    () => {
        "SELECT c.checkpoint_id FROM checkpoints c WHERE c.thread_id = $1 AND c.created_at < $2 \
            AND c.checkpoint_id < (SELECT MIN(n.checkpoint_id) FROM (\
                SELECT checkpoint_id FROM checkpoints WHERE thread_id = $1 ORDER BY checkpoint_id DESC LIMIT $3) n) \
            AND c.checkpoint_id NOT IN (SELECT k.parent_id FROM checkpoints k WHERE k.thread_id = $1 AND k.parent_id IS NOT NULL \
                AND (k.created_at >= $2 OR k.checkpoint_id >= (SELECT MIN(n.checkpoint_id) FROM (\
                    SELECT checkpoint_id FROM checkpoints WHERE thread_id = $1 ORDER BY checkpoint_id DESC LIMIT $3) n))) \
            ORDER BY c.checkpoint_id LIMIT $4"
    };
}

const FIND: &str = expired_checkpoints!();
const FORGET: &str = concat!(
    "DELETE FROM checkpoints WHERE thread_id = $1 AND checkpoint_id IN (",
    expired_checkpoints!(),
    ")"
);

/// Parameters: thread, earliest retained time, number of newest checkpoints to retain, and limit.
type ForgetQuery = (ThreadId, i64, i64, i64);

fn values((thread, since, newest, limit): &ForgetQuery) -> [Value; 4] {
    [
        thread.as_str().into(),
        (*since).into(),
        (*newest).into(),
        (*limit).into(),
    ]
}

/// Deletes up to `limit` checkpoints; the message log stays. Avoids a write if no checkpoint is to
/// be deleted.
pub(super) async fn forget_history(
    db: &Database,
    thread: &ThreadId,
    keep: &HistoryRetention,
    limit: usize,
) -> Result<usize, CheckpointError> {
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let query: ForgetQuery = (
        thread.clone(),
        keep.since.map_or(i64::MAX, micros),
        number(keep.newest.max(1)),
        number(limit as u64),
    );
    let backend = db.reads().get_database_backend();
    let one: ForgetQuery = (thread.clone(), query.1, query.2, 1);
    let first = db
        .reads()
        .query_one_raw(Statement::from_sql_and_values(backend, FIND, values(&one)))
        .await;
    if read_checkpoints(first)?.is_none() {
        return Ok(0);
    }
    db.writes()
        .release(query, |tx, query| Box::pin(forget(tx, query)))
        .await
}

async fn forget(
    tx: &DatabaseTransaction,
    query: &ForgetQuery,
) -> Result<usize, TxError<CheckpointError>> {
    let thread = &query.0;
    // Locked as in admission, so that no run starts in the meantime.
    if thread::locked(tx, thread, None).await?.is_none() {
        return Ok(0);
    }
    let of_thread = run::Entity::find().filter(run::Column::ThreadId.eq(thread.as_str()));
    if of_thread.filter(run::is_active()).one(tx).await?.is_some() {
        return Ok(0);
    }
    let statement =
        Statement::from_sql_and_values(tx.get_database_backend(), FORGET, values(query));
    Ok(usize::try_from(tx.execute_raw(statement).await?.rows_affected()).unwrap_or(usize::MAX))
}
