//! Writes and deletes checkpoints within a transaction.

use deerflow_core::compute::{Size, heavy_poll};
use deerflow_core::ids::{RunId, ThreadId};
use deerflow_runtime::checkpoint::{CheckpointWrite, LogRange};
use sea_orm::{
    ColumnTrait, ConnectionTrait, DatabaseTransaction, DbErr, EntityTrait, ExprTrait, QueryFilter,
    QueryResult, Statement, Value,
};

use super::lookup::newest_row;
use super::row::{message_rows, meta, new_row, signed};
use crate::db::entity::{checkpoint, checkpoint_message};
use crate::db::error::DbFailure;
use crate::db::statement_batch::{StatementBatch, all_tagged};
use crate::db::tx::TxError;

/// Writes checkpoints and their new messages.
pub(crate) async fn write_checkpoints<E>(
    tx: &DatabaseTransaction,
    writes: &[CheckpointWrite],
) -> Result<(), TxError<E>> {
    heavy_poll(new_messages(writes)).await;
    let mut statements = StatementBatch::new(tx);
    add_checkpoints(&mut statements, writes);
    refuse_incomplete(&statements.run(tx).await?, writes)
}

/// Estimates the size of the new messages of these checkpoints.
pub(crate) fn new_messages(writes: &[CheckpointWrite]) -> Size {
    let bytes = writes
        .iter()
        .flat_map(|write| &write.new_messages)
        .map(|(_, message)| message.json().get().len());
    Size {
        items: writes.iter().map(|write| write.new_messages.len()).sum(),
        bytes: bytes.sum(),
    }
}

const CHECKPOINTS: &str = "checkpoints (thread_id, checkpoint_id, parent_id, run_id, source, step, layout_json, channels_json, \
    next_json, machine_json, metadata_json, created_at)";

/// Updates the pending nodes of an existing checkpoint.
pub(super) const AMEND: &str = "\
    UPDATE checkpoints SET next_json = ?, machine_json = ? WHERE thread_id = ? AND checkpoint_id = ? \
    RETURNING 'amended'";

/// Adds the rows of checkpoints and their new messages, and the count that [`refuse_incomplete`]
/// checks. All writes must be of one thread.
pub(crate) fn add_checkpoints(statements: &mut StatementBatch, writes: &[CheckpointWrite]) {
    let Some(CheckpointWrite { meta, .. }) = writes.first() else {
        return;
    };
    let messages = writes.iter().flat_map(message_rows).map(message_values);
    statements.add_rows(
        "checkpoint_messages (thread_id, place, message_json)",
        "(?, ?, ?)",
        messages,
    );
    let new = writes
        .iter()
        .filter(|write| !write.amends)
        .map(new_row)
        .map(checkpoint_values);
    statements.add_rows(CHECKPOINTS, "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", new);
    for write in writes.iter().filter(|write| write.amends) {
        let row = new_row(write);
        statements.add(
            AMEND,
            [
                row.next_json.into(),
                row.machine_json.into(),
                row.thread_id.into(),
                row.checkpoint_id.into(),
            ],
        );
    }
    if let Some(LogRange(first, last)) = positions_to_verify(writes) {
        statements.add(
            COUNT_MESSAGES,
            [
                meta.thread_id.as_str().into(),
                signed(first).into(),
                signed(last).into(),
            ],
        );
    }
}

fn message_values(row: checkpoint_message::Model) -> Vec<Value> {
    vec![
        row.thread_id.into(),
        row.place.into(),
        row.message_json.into(),
    ]
}

fn checkpoint_values(row: checkpoint::Model) -> Vec<Value> {
    vec![
        row.thread_id.into(),
        row.checkpoint_id.into(),
        row.parent_id.into(),
        row.run_id.into(),
        row.source.into(),
        row.step.into(),
        row.layout_json.into(),
        row.channels_json.into(),
        row.next_json.into(),
        row.machine_json.into(),
        row.metadata_json.into(),
        row.created_at.into(),
    ]
}

pub(super) const COUNT_MESSAGES: &str = "SELECT 'messages', COUNT(*) FROM checkpoint_messages WHERE thread_id = ? AND place BETWEEN ? AND ?";

/// Returns the log positions that must exist once `writes` are stored: the new ones, the one before
/// them, and the greatest one that a layout names.
///
/// A writer numbers its messages from the end of the log and sends them in order. So when each
/// commit connects to the previous one, every lower position exists too, and what earlier commits
/// proved need not be counted again.
pub(crate) fn positions_to_verify(writes: &[CheckpointWrite]) -> Option<LogRange> {
    let first_new = writes
        .iter()
        .flat_map(|write| &write.new_messages)
        .map(|(place, _)| *place)
        .min();
    let last_new = writes
        .iter()
        .flat_map(|write| &write.new_messages)
        .map(|(place, _)| *place)
        .max();
    let last_named = writes
        .iter()
        .flat_map(|write| &write.layout)
        .map(|LogRange(_, last)| *last)
        .max();
    let last = Ord::max(last_named, last_new)?;
    let first = first_new.map_or(last, |first| Ord::max(first.saturating_sub(1), 1));
    Some(LogRange(first, last))
}

/// Refuses checkpoints that name messages missing in the log, because neither they nor later ones
/// could be read, and amendments of missing checkpoints.
pub(crate) fn refuse_incomplete<E>(
    rows: &[QueryResult],
    writes: &[CheckpointWrite],
) -> Result<(), TxError<E>> {
    let Some(CheckpointWrite { meta, .. }) = writes.first() else {
        return Ok(());
    };
    if let Some(LogRange(first, last)) = positions_to_verify(writes) {
        let needed = last.saturating_sub(first).saturating_add(1);
        let found = all_tagged(rows, "messages")
            .next()
            .map(|row| row.try_get_by_index::<i64>(1))
            .transpose()?;
        let found = found
            .and_then(|found| u64::try_from(found).ok())
            .unwrap_or_default();
        if found != needed {
            let id = &meta.checkpoint_id;
            let text = format!(
                "checkpoint {id} needs messages {first} to {last} of its thread's log, which has {found} of these {needed}"
            );
            return Err(TxError::Db(DbFailure::Failed(text)));
        }
    }
    if all_tagged(rows, "amended").count() != writes.iter().filter(|write| write.amends).count() {
        return Err(TxError::Db(DbFailure::Failed(format!(
            "a checkpoint of thread {} cannot be amended, it does not exist",
            meta.thread_id
        ))));
    }
    Ok(())
}

/// Deletes the checkpoints of a run; the message log stays.
pub(crate) async fn delete_run_checkpoints(
    tx: &DatabaseTransaction,
    thread: &ThreadId,
    run: &RunId,
) -> Result<(), DbErr> {
    let of_run = checkpoint::Column::ThreadId
        .eq(thread.as_str())
        .and(checkpoint::Column::RunId.eq(run.as_str()));
    checkpoint::Entity::delete_many()
        .filter(of_run)
        .exec(tx)
        .await?;
    Ok(())
}

/// Returns `true` if the thread's newest checkpoint has pending nodes.
pub(crate) async fn has_pending_nodes(
    tx: &DatabaseTransaction,
    thread: &ThreadId,
) -> Result<bool, DbErr> {
    // The end of a run must be written even if an old checkpoint is unreadable.
    Ok(newest_row(tx, thread).await?.is_some_and(|row| match meta(&row) {
        Ok(meta) => !meta.next.is_empty(),
        Err(error) => {
            tracing::error!(thread_id = %thread, %error, "the thread's newest checkpoint is unreadable");
            false
        }
    }))
}

/// Deletes a thread's checkpoints and message log.
pub(crate) async fn delete_thread_checkpoints(
    tx: &DatabaseTransaction,
    thread: &ThreadId,
) -> Result<(), DbErr> {
    checkpoint::Entity::delete_many()
        .filter(checkpoint::Column::ThreadId.eq(thread.as_str()))
        .exec(tx)
        .await?;
    checkpoint_message::Entity::delete_many()
        .filter(checkpoint_message::Column::ThreadId.eq(thread.as_str()))
        .exec(tx)
        .await?;
    Ok(())
}

const DELETE_OLDER: &str = "\
    DELETE FROM checkpoints WHERE thread_id = $1 \
        AND checkpoint_id < (SELECT MAX(n.checkpoint_id) FROM checkpoints n WHERE n.thread_id = $1)";

/// Deletes all checkpoints of a thread but the newest; the message log stays.
pub(crate) async fn delete_past_checkpoints(
    tx: &DatabaseTransaction,
    thread: &ThreadId,
) -> Result<(), DbErr> {
    let values: [Value; 1] = [thread.as_str().into()];
    tx.execute_raw(Statement::from_sql_and_values(
        tx.get_database_backend(),
        DELETE_OLDER,
        values,
    ))
    .await?;
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

/// The copy continues on the contents of flows that the original's runs pinned.
pub(super) const COPY_PINS: &str = "\
    INSERT INTO flow_pins (thread_id, content_hash) \
    SELECT $2, content_hash FROM flow_pins WHERE thread_id = $1 ON CONFLICT DO NOTHING";

/// Copies a thread's log and checkpoints within the database.
pub(super) async fn copy_thread(
    tx: &DatabaseTransaction,
    from: &ThreadId,
    to: &ThreadId,
) -> Result<(), DbErr> {
    for sql in [COPY_MESSAGES, COPY_CHECKPOINTS, COPY_PINS] {
        let values: [Value; 2] = [from.as_str().into(), to.as_str().into()];
        tx.execute_raw(Statement::from_sql_and_values(
            tx.get_database_backend(),
            sql,
            values,
        ))
        .await?;
    }
    Ok(())
}
