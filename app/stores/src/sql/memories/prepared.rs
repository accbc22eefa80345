//! Prepared statements of SQLite for what each run does with a memory.

use rusqlite::{Connection, OptionalExtension, params};
use sea_orm::DbErr;

use crate::db::entity::memory;
use crate::db::tx::Prepared;
use deerflow_core::ids::ThreadId;
use deerflow_runtime::runs::store::StoreError;

/// Maximum length of a document that is read in the caller's thread, in bytes. An imported document
/// can have several megabytes.
const MAX_DOCUMENT: i64 = 512 << 10;

/// The length of a document is known without reading it.
const GET: &str = "\
    SELECT user_id, agent, CASE WHEN octet_length(document_json) <= ?3 THEN document_json END, revision, edits, updated_at \
    FROM memories WHERE user_id = ?1 AND agent = ?2";

/// Also used on Postgres.
pub(super) const ADD_PENDING: &str = "\
    INSERT INTO memory_news (thread_id, user_id, agent, number, tries, due_at) VALUES (?, ?, ?, 1, 0, ?) \
    ON CONFLICT (thread_id, user_id, agent) DO UPDATE SET number = memory_news.number + 1, tries = 0, due_at = excluded.due_at \
    RETURNING 'noted'";

/// Pending update of a thread that a run adds.
#[derive(Debug)]
pub(super) struct AddedUpdate {
    pub(super) thread: ThreadId,
    pub(super) user: String,
    pub(super) agent: String,
    pub(super) due_at: i64,
}

/// Returns the row of a memory, unless its document is long.
pub(super) fn row(
    connection: &Connection,
    (user, agent): &(String, String),
) -> rusqlite::Result<Prepared<Option<memory::Model>, DbErr>> {
    let mut statement = connection.prepare_cached(GET)?;
    let row = statement.query_row(params![user, agent, MAX_DOCUMENT], |row| {
        let Some(document_json) = row.get(2)? else {
            return Ok(None);
        };
        Ok(Some(memory::Model {
            user_id: row.get(0)?,
            agent: row.get(1)?,
            document_json,
            revision: row.get(3)?,
            edits: row.get(4)?,
            updated_at: row.get(5)?,
        }))
    });
    Ok(match row.optional()? {
        Some(None) => Prepared::Unsuited,
        found => Prepared::Done(Ok(found.flatten())),
    })
}

/// Adds a pending update of a thread.
pub(super) fn add(
    connection: &Connection,
    added: &AddedUpdate,
) -> rusqlite::Result<Prepared<(), StoreError>> {
    let values = params![added.thread.as_str(), added.user, added.agent, added.due_at];
    // A statement that returns a row can only be queried.
    connection
        .prepare_cached(ADD_PENDING)?
        .query_row(values, |_| Ok(()))?;
    Ok(Prepared::Done(Ok(())))
}

#[cfg(test)]
#[path = "prepared_tests.rs"]
mod tests;
