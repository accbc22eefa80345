//! Frequent statements of the memory store, prepared by SQLite.

use rusqlite::{Connection, OptionalExtension, params};

use super::{ADD_PENDING, AddedUpdate};
use crate::db::entity::memory;
use crate::db::tx::Prepared;
use deerflow_runtime::runs::store::StoreError;

const GET: &str = "\
    SELECT user_id, agent, document_json, revision, edits, updated_at \
    FROM memories WHERE user_id = ?1 AND agent = ?2";

/// Returns the row of a memory.
pub(super) fn row(
    connection: &Connection,
    (user, agent): &(String, String),
) -> rusqlite::Result<Option<memory::Model>> {
    let mut statement = connection.prepare_cached(GET)?;
    let row = statement.query_row(params![user, agent], |row| {
        Ok(memory::Model {
            user_id: row.get(0)?,
            agent: row.get(1)?,
            document_json: row.get(2)?,
            revision: row.get(3)?,
            edits: row.get(4)?,
            updated_at: row.get(5)?,
        })
    });
    row.optional()
}

/// Adds a pending update of a thread.
pub(super) fn add(
    connection: &Connection,
    added: &AddedUpdate,
) -> rusqlite::Result<Prepared<(), StoreError>> {
    let values = params![added.thread.as_str(), added.user, added.agent, added.due_at];
    // The statement returns a row, so it is not executed but queried.
    connection
        .prepare_cached(ADD_PENDING)?
        .query_row(values, |_| Ok(()))?;
    Ok(Prepared::Done(Ok(())))
}
