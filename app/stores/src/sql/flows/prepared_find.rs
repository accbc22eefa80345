//! Prepared statement of SQLite that reads the current version of a flow, as each of its runs does.

use rusqlite::{Connection, OptionalExtension, params};

use crate::db::entity::flow;

const FIND: &str = "\
    SELECT user_id, slug, version, content_hash, summary_json, created_at, updated_at \
    FROM flows WHERE user_id = ?1 AND slug = ?2";

/// Returns the row of a flow.
pub(super) fn row(
    connection: &Connection,
    (user, slug): &(String, String),
) -> rusqlite::Result<Option<flow::Model>> {
    let mut statement = connection.prepare_cached(FIND)?;
    let row = statement.query_row(params![user, slug], |row| {
        Ok(flow::Model {
            user_id: row.get(0)?,
            slug: row.get(1)?,
            version: row.get(2)?,
            content_hash: row.get(3)?,
            summary_json: row.get(4)?,
            created_at: row.get(5)?,
            updated_at: row.get(6)?,
        })
    });
    row.optional()
}
