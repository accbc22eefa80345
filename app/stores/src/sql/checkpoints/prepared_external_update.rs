//! External updates of a thread's state with prepared statements of SQLite, which do not copy large
//! messages.
//!
//! Everything is checked before the first write, so that an unsuited update changes nothing. Refused
//! updates are left to [`super::external_update`].

use deerflow_core::ids::ThreadId;
use deerflow_runtime::checkpoint::{ExternalWrite, PutError};
use rusqlite::{Connection, OptionalExtension, params};

use super::prepared_write::insert_checkpoints;
use super::row::signed;
use crate::db::entity::{micros, short_title};
use crate::db::tx::Prepared;

const IS_IDLE_THREAD: &str = "\
    SELECT 1 FROM threads_meta WHERE thread_id = ?1 AND NOT EXISTS ( \
        SELECT 1 FROM runs WHERE thread_id = ?1 AND status IN ('pending', 'starting', 'running'))";

const NEWEST_CHECKPOINT: &str = "\
    SELECT checkpoint_id FROM checkpoints WHERE thread_id = ?1 ORDER BY checkpoint_id DESC LIMIT 1";

const LOG_TAIL: &str =
    "SELECT COALESCE(MAX(place), 0) FROM checkpoint_messages WHERE thread_id = ?1";

const UPDATE_THREAD: &str = "\
    UPDATE threads_meta SET display_name = ?2, status = ?3, updated_at = ?4, state_updated_at = ?4 WHERE thread_id = ?1";

/// Writes the checkpoint and the thread row.
pub(super) fn write(
    connection: &Connection,
    change: &ExternalWrite,
) -> rusqlite::Result<Prepared<(), PutError>> {
    let meta = &change.write.meta;
    if !is_unchanged(connection, &meta.thread_id, change)? {
        return Ok(Prepared::Unsuited);
    }
    insert_checkpoints(connection, std::slice::from_ref(&change.write))?;
    let values = params![
        meta.thread_id.as_str(),
        change.title.as_deref().map(short_title),
        change.status.as_str(),
        micros(meta.created_at),
    ];
    connection.prepare_cached(UPDATE_THREAD)?.execute(values)?;
    Ok(Prepared::Done(Ok(())))
}

/// Reports whether the thread exists, has no active run, and has not changed since the update was
/// planned.
fn is_unchanged(
    connection: &Connection,
    thread: &ThreadId,
    change: &ExternalWrite,
) -> rusqlite::Result<bool> {
    let key = [thread.as_str()];
    if !connection.prepare_cached(IS_IDLE_THREAD)?.exists(key)? {
        return Ok(false);
    }
    let mut newest = connection.prepare_cached(NEWEST_CHECKPOINT)?;
    let newest: Option<String> = newest.query_row(key, |row| row.get(0)).optional()?;
    let mut log_tail = connection.prepare_cached(LOG_TAIL)?;
    let log_tail: i64 = log_tail.query_row(key, |row| row.get(0))?;
    Ok(
        newest.as_deref() == change.newest.as_ref().map(|id| id.as_str())
            && log_tail == signed(change.log_tail),
    )
}
