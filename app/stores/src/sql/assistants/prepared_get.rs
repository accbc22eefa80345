//! Read of an assistant with a prepared statement of SQLite.

use rusqlite::{Connection, OptionalExtension, params};
use uuid::Uuid;

use crate::db::entity::assistant;

const GET: &str = "\
    SELECT assistant_id, user_id, version, graph_id, name, description, config_json, context_json, metadata_json, \
        created_at, updated_at \
    FROM assistants WHERE assistant_id = ?1 AND (?2 IS NULL OR user_id = ?2)";

/// Returns the row of an assistant; that of another user only if `user` is `None`.
pub(super) fn row(
    connection: &Connection,
    id: Uuid,
    user: Option<&str>,
) -> rusqlite::Result<Option<assistant::Model>> {
    let mut statement = connection.prepare_cached(GET)?;
    let row = statement.query_row(params![id.to_string(), user], |row| {
        Ok(assistant::Model {
            assistant_id: row.get(0)?,
            user_id: row.get(1)?,
            version: row.get(2)?,
            graph_id: row.get(3)?,
            name: row.get(4)?,
            description: row.get(5)?,
            config_json: row.get(6)?,
            context_json: row.get(7)?,
            metadata_json: row.get(8)?,
            created_at: row.get(9)?,
            updated_at: row.get(10)?,
        })
    });
    row.optional()
}
