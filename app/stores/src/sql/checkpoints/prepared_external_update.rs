//! External updates of a thread's state with prepared statements of SQLite, which do not copy large
//! messages.
//!
//! Everything is checked before the first write, so that an unsuited update changes nothing. Refused
//! updates are left to [`super::external_update`].

use deerflow_core::ids::ThreadId;
use deerflow_runtime::checkpoint::{ExternalWrite, PutError};
use rusqlite::{Connection, params};

use super::prepared_write::{head_columns, insert_checkpoints};
use super::row::signed;
use crate::db::entity::{micros, run, short_title};
use crate::db::tx::Prepared;

const THREAD_EXISTS: &str = "SELECT 1 FROM threads_meta WHERE thread_id = ?1";

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
    if !connection.prepare_cached(THREAD_EXISTS)?.exists(key)?
        || connection.prepare_cached(run::HAS_ACTIVE)?.exists(key)?
    {
        return Ok(false);
    }
    let (newest, log_tail) = head_columns(connection, thread)?;
    Ok(
        newest.as_deref() == change.newest.as_ref().map(|id| id.as_str())
            && log_tail == signed(change.log_tail),
    )
}
