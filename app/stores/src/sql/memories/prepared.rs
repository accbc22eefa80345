//! Prepared statement of SQLite that reads a memory, as each run does.

use rusqlite::{Connection, OptionalExtension, params};
use sea_orm::DbErr;

use crate::db::entity::memory;
use crate::db::tx::Prepared;

/// Maximum length of a document that is read in the caller's thread, in bytes. An imported document
/// can have several megabytes.
const MAX_DOCUMENT: i64 = 512 << 10;

/// The length of a document is known without reading it.
const GET: &str = "\
    SELECT user_id, agent, CASE WHEN octet_length(document_json) <= ?3 THEN document_json END, revision, edits, updated_at \
    FROM memories WHERE user_id = ?1 AND agent = ?2";

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

#[cfg(test)]
#[path = "prepared_tests.rs"]
mod tests;
