//! Writing and removing checkpoints, inside a transaction.

use harness::ids::{RunId, ThreadId};
use harness::runtime::checkpoint::{CheckpointWrite, LogRange};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, ExprTrait, IntoActiveModel, PaginatorTrait, QueryFilter,
    QueryOrder, QuerySelect, Statement, Value,
};

use super::read::{RANGES_PER_SELECT, in_ranges, union};
use super::row::{message_rows, meta, new_row};
use crate::entity::{checkpoint, checkpoint_message};
use crate::error::Fault;
use crate::tx::TxError;

/// Rows per statement, far below the limits of both databases.
const ROWS_PER_INSERT: usize = 500;

/// Writes checkpoints and the messages that are new with them: one statement each, however many there are.
pub(crate) async fn write_checkpoints<E>(tx: &DatabaseTransaction, writes: &[CheckpointWrite]) -> Result<(), TxError<E>> {
    let mut messages: Vec<_> = writes.iter().flat_map(message_rows).collect();
    while !messages.is_empty() {
        let rest = messages.split_off(messages.len().min(ROWS_PER_INSERT));
        let rows = messages.into_iter().map(IntoActiveModel::into_active_model);
        checkpoint_message::Entity::insert_many(rows).exec_without_returning(tx).await?;
        messages = rest;
    }
    for some in writes.chunks(ROWS_PER_INSERT) {
        checkpoint::Entity::insert_many(some.iter().map(|write| new_row(write).into_active_model())).exec_without_returning(tx).await?;
    }
    refuse_missing_messages(tx, writes).await
}

/// A checkpoint that names messages the log does not have could never be read, nor could what follows it. All writes are of one
/// thread.
async fn refuse_missing_messages<E>(tx: &DatabaseTransaction, writes: &[CheckpointWrite]) -> Result<(), TxError<E>> {
    let Some(CheckpointWrite { meta, .. }) = writes.first() else { return Ok(()) };
    for ranges in union(writes.iter().map(|write| &write.layout)).chunks(RANGES_PER_SELECT) {
        let named =
            ranges.iter().fold(0_u64, |sum, LogRange(first, last)| sum.saturating_add(last.saturating_sub(*first).saturating_add(1)));
        let there = in_ranges(&meta.thread_id, ranges).count(tx).await?;
        if there != named {
            let text = format!("checkpoint {} needs {named} messages of which the log has {there}", meta.checkpoint_id);
            return Err(TxError::Db(Fault::Failed(text)));
        }
    }
    Ok(())
}

/// Removes the checkpoints of a run; the log stays.
pub(crate) async fn delete_run_checkpoints(tx: &DatabaseTransaction, thread: &ThreadId, run: &RunId) -> Result<(), DbErr> {
    let of_run = checkpoint::Column::ThreadId.eq(thread.as_str()).and(checkpoint::Column::RunId.eq(run.as_str()));
    checkpoint::Entity::delete_many().filter(of_run).exec(tx).await?;
    Ok(())
}

/// The thread's newest checkpoint.
pub(super) async fn newest(tx: &DatabaseTransaction, thread: &ThreadId) -> Result<Option<checkpoint::Model>, DbErr> {
    let of_thread = checkpoint::Entity::find().filter(checkpoint::Column::ThreadId.eq(thread.as_str()));
    of_thread.order_by_desc(checkpoint::Column::CheckpointId).limit(1).one(tx).await
}

/// The last place of the thread's log, 0 when it is empty.
pub(super) async fn log_tail(db: &impl ConnectionTrait, thread: &ThreadId) -> Result<u64, DbErr> {
    let newest = checkpoint_message::Entity::find()
        .select_only()
        .column(checkpoint_message::Column::Place)
        .filter(checkpoint_message::Column::ThreadId.eq(thread.as_str()))
        .order_by_desc(checkpoint_message::Column::Place)
        .limit(1)
        .into_tuple::<i64>()
        .one(db)
        .await?;
    Ok(newest.map_or(0, |place| u64::try_from(place).unwrap_or_default()))
}

/// Whether the thread's newest checkpoint names nodes that are due.
pub(crate) async fn is_anything_due(tx: &DatabaseTransaction, thread: &ThreadId) -> Result<bool, DbErr> {
    // The end of a run is written even when an old checkpoint cannot be read.
    Ok(newest(tx, thread).await?.is_some_and(|row| match meta(&row) {
        Ok(meta) => !meta.next.is_empty(),
        Err(error) => {
            tracing::error!(thread_id = %thread, %error, "the thread's newest checkpoint is unreadable");
            false
        }
    }))
}

/// Removes a thread's checkpoints and log.
pub(crate) async fn delete_thread_checkpoints(tx: &DatabaseTransaction, thread: &ThreadId) -> Result<(), DbErr> {
    checkpoint::Entity::delete_many().filter(checkpoint::Column::ThreadId.eq(thread.as_str())).exec(tx).await?;
    checkpoint_message::Entity::delete_many().filter(checkpoint_message::Column::ThreadId.eq(thread.as_str())).exec(tx).await?;
    Ok(())
}

const FORGET_PAST: &str = "\
    DELETE FROM checkpoints WHERE thread_id = $1 \
        AND checkpoint_id < (SELECT MAX(n.checkpoint_id) FROM checkpoints n WHERE n.thread_id = $1)";

/// Removes all checkpoints of a thread but the newest; the log stays.
pub(crate) async fn forget_past(tx: &DatabaseTransaction, thread: &ThreadId) -> Result<(), DbErr> {
    let values: [Value; 1] = [thread.as_str().into()];
    tx.execute_raw(Statement::from_sql_and_values(tx.get_database_backend(), FORGET_PAST, values)).await?;
    Ok(())
}

const COPY_MESSAGES: &str = "\
    INSERT INTO checkpoint_messages (thread_id, place, message_json) \
    SELECT $2, place, message_json FROM checkpoint_messages WHERE thread_id = $1";

const COPY_CHECKPOINTS: &str = "\
    INSERT INTO checkpoints (thread_id, checkpoint_id, parent_id, run_id, source, step, layout_json, channels_json, next_json, \
        machine_json, metadata_json, created_at) \
    SELECT $2, checkpoint_id, parent_id, run_id, source, step, layout_json, channels_json, next_json, \
        machine_json, metadata_json, created_at \
    FROM checkpoints WHERE thread_id = $1";

/// Copies log and checkpoints inside the database.
pub(super) async fn copy_thread(tx: &DatabaseTransaction, from: &ThreadId, to: &ThreadId) -> Result<(), DbErr> {
    for sql in [COPY_MESSAGES, COPY_CHECKPOINTS] {
        let values: [Value; 2] = [from.as_str().into(), to.as_str().into()];
        tx.execute_raw(Statement::from_sql_and_values(tx.get_database_backend(), sql, values)).await?;
    }
    Ok(())
}
