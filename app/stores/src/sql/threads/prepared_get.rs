//! Read of a thread with a prepared statement of SQLite.

use deerflow_core::ids::ThreadId;
use rusqlite::{Connection, OptionalExtension, params};

use crate::db::entity::thread;

const GET: &str = "\
    SELECT thread_id, assistant_id, run_assistant_id, user_id, display_name, status, metadata_json, pinned, temporary, \
        created_at, updated_at, state_updated_at, ttl_micros, keep_latest, forgot_at \
    FROM threads_meta WHERE thread_id = ?1 AND (?2 IS NULL OR user_id = ?2)";

/// Returns the row of a thread; that of another user only if `user` is `None`.
pub(super) fn row(
    connection: &Connection,
    thread: &ThreadId,
    user: Option<&str>,
) -> rusqlite::Result<Option<thread::Model>> {
    let mut statement = connection.prepare_cached(GET)?;
    let row = statement.query_row(params![thread.as_str(), user], |row| {
        Ok(thread::Model {
            thread_id: row.get(0)?,
            assistant_id: row.get(1)?,
            run_assistant_id: row.get(2)?,
            user_id: row.get(3)?,
            display_name: row.get(4)?,
            status: row.get(5)?,
            metadata_json: row.get(6)?,
            pinned: row.get(7)?,
            temporary: row.get(8)?,
            created_at: row.get(9)?,
            updated_at: row.get(10)?,
            state_updated_at: row.get(11)?,
            ttl_micros: row.get(12)?,
            keep_latest: row.get(13)?,
            forgot_at: row.get(14)?,
        })
    });
    row.optional()
}
