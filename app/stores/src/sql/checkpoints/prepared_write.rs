//! Writes checkpoints with prepared statements of SQLite.

use deerflow_core::ids::ThreadId;
use deerflow_runtime::checkpoint::{CheckpointWrite, LogRange};
use rusqlite::{Connection, Error, params};

use super::row::{new_row, signed};
use super::write::{AMEND, COUNT_MESSAGES, positions_to_verify};
use crate::db::long_values;

const INSERT_MESSAGE: &str =
    "INSERT INTO checkpoint_messages (thread_id, place, message_json) VALUES (?1, ?2, ?3)";

/// Inserts a row with space for a long message: its length in bytes is the third value.
const RESERVE_MESSAGE: &str = "INSERT INTO checkpoint_messages (thread_id, place, message_json) VALUES (?1, ?2, ZEROBLOB(?3))";

const INSERT_CHECKPOINT: &str = "\
    INSERT INTO checkpoints (thread_id, checkpoint_id, parent_id, run_id, source, step, layout_json, channels_json, next_json, \
        machine_json, metadata_json, created_at) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";

const HEAD: &str = "\
    SELECT (SELECT checkpoint_id FROM checkpoints WHERE thread_id = ?1 ORDER BY checkpoint_id DESC LIMIT 1), \
        (SELECT COALESCE(MAX(place), 0) FROM checkpoint_messages WHERE thread_id = ?1)";

/// Returns the id of a thread's newest checkpoint, and the last position of its log, 0 if it is empty.
pub(crate) fn head_columns(
    connection: &Connection,
    thread: &ThreadId,
) -> rusqlite::Result<(Option<String>, i64)> {
    let mut statement = connection.prepare_cached(HEAD)?;
    statement.query_row([thread.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
}

/// Writes checkpoints of one thread and their new messages. Fails if a checkpoint names a message
/// that is missing in the log, or amends a checkpoint that does not exist.
pub(crate) fn insert_checkpoints(
    connection: &Connection,
    writes: &[CheckpointWrite],
) -> rusqlite::Result<()> {
    for write in writes {
        insert_messages(connection, write)?;
        if write.amends {
            amend(connection, write)?;
        } else {
            insert(connection, write)?;
        }
    }
    verify(connection, writes)
}

fn insert_messages(connection: &Connection, write: &CheckpointWrite) -> rusqlite::Result<()> {
    let thread = write.meta.thread_id.as_str();
    let mut insert = connection.prepare_cached(INSERT_MESSAGE)?;
    for (place, message) in &write.new_messages {
        let json = message.json().get();
        if long_values::is_long(json) {
            let mut reserve = connection.prepare_cached(RESERVE_MESSAGE)?;
            reserve.execute(params![thread, signed(*place), long_values::length(json)])?;
            long_values::fill_inserted(connection, "checkpoint_messages", "message_json", json)?;
        } else {
            insert.execute(params![thread, signed(*place), json])?;
        }
    }
    Ok(())
}

fn amend(connection: &Connection, write: &CheckpointWrite) -> rusqlite::Result<()> {
    let row = new_row(write);
    let mut amend = connection.prepare_cached(AMEND)?;
    let values = params![
        row.next_json,
        row.machine_json,
        row.thread_id,
        row.checkpoint_id
    ];
    if amend.exists(values)? {
        Ok(())
    } else {
        Err(Error::QueryReturnedNoRows)
    }
}

fn insert(connection: &Connection, write: &CheckpointWrite) -> rusqlite::Result<()> {
    let row = new_row(write);
    let values = params![
        row.thread_id,
        row.checkpoint_id,
        row.parent_id,
        row.run_id,
        row.source,
        row.step,
        row.layout_json,
        row.channels_json,
        row.next_json,
        row.machine_json,
        row.metadata_json,
        row.created_at,
    ];
    let mut insert = connection.prepare_cached(INSERT_CHECKPOINT)?;
    insert.execute(values)?;
    Ok(())
}

/// Fails if a message that the checkpoints name is missing in the log.
fn verify(connection: &Connection, writes: &[CheckpointWrite]) -> rusqlite::Result<()> {
    let (Some(first_write), Some(LogRange(first, last))) =
        (writes.first(), positions_to_verify(writes))
    else {
        return Ok(());
    };
    let values = params![
        first_write.meta.thread_id.as_str(),
        signed(first),
        signed(last)
    ];
    let mut count = connection.prepare_cached(COUNT_MESSAGES)?;
    let found: i64 = count.query_row(values, |row| row.get(1))?;
    if found == signed(last.saturating_sub(first).saturating_add(1)) {
        Ok(())
    } else {
        Err(Error::QueryReturnedNoRows)
    }
}
