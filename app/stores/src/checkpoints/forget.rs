//! Letting go of old checkpoints.

use harness::ids::ThreadId;
use harness::runtime::checkpoint::{CheckpointError, KeptHistory};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, EntityTrait, QueryFilter, Statement, Value,
};

use crate::connect::Database;
use crate::entity::{micros, run};
use crate::error::read_checkpoints;
use crate::runs::is_active;
use crate::threads::locked;
use crate::tx::TxError;

/// Those that neither stay nor are followed by one that does, the oldest first.
macro_rules! forgotten {
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

const FIND: &str = forgotten!();
const FORGET: &str = concat!(
    "DELETE FROM checkpoints WHERE thread_id = $1 AND checkpoint_id IN (",
    forgotten!(),
    ")"
);

/// What is looked for: thread, moment, number and limit.
type Wanted = (ThreadId, i64, i64, i64);

fn values((thread, since, newest, most): &Wanted) -> [Value; 4] {
    [
        thread.as_str().into(),
        (*since).into(),
        (*newest).into(),
        (*most).into(),
    ]
}

/// Removes up to `most` checkpoints; the log stays. Nothing is written where there is none to remove.
pub(super) async fn forget_history(
    db: &Database,
    thread: &ThreadId,
    keep: &KeptHistory,
    most: usize,
) -> Result<usize, CheckpointError> {
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let wanted: Wanted = (
        thread.clone(),
        keep.since.map_or(i64::MAX, micros),
        number(keep.newest.max(1)),
        number(most as u64),
    );
    let backend = db.reads().get_database_backend();
    let one: Wanted = (thread.clone(), wanted.1, wanted.2, 1);
    let found = db
        .reads()
        .query_one_raw(Statement::from_sql_and_values(backend, FIND, values(&one)))
        .await;
    if read_checkpoints(found)?.is_none() {
        return Ok(0);
    }
    db.writes()
        .release(wanted, |tx, wanted| Box::pin(forget(tx, wanted)))
        .await
}

async fn forget(
    tx: &DatabaseTransaction,
    wanted: &Wanted,
) -> Result<usize, TxError<CheckpointError>> {
    let thread = &wanted.0;
    // Locked as in admission: no run begins meanwhile.
    if locked(tx, thread, None).await?.is_none() {
        return Ok(0);
    }
    let of_thread = run::Entity::find().filter(run::Column::ThreadId.eq(thread.as_str()));
    if of_thread.filter(is_active()).one(tx).await?.is_some() {
        return Ok(0);
    }
    let statement =
        Statement::from_sql_and_values(tx.get_database_backend(), FORGET, values(wanted));
    Ok(usize::try_from(tx.execute_raw(statement).await?.rows_affected()).unwrap_or(usize::MAX))
}
