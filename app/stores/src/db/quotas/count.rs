//! Numbers of rows of a user.

use deerflow_core::quota::Quota;
use rusqlite::{Connection, params};
use sea_orm::{ConnectionTrait, DbErr, Statement};

/// Returns the statement that counts the rows of the user `$1`, up to `$2`.
fn statement(quota: Quota) -> Option<&'static str> {
    Some(match quota {
        Quota::Threads => {
            "SELECT COUNT(*) FROM (SELECT 1 FROM threads_meta WHERE user_id = $1 LIMIT $2) AS counted"
        }
        Quota::Assistants => {
            "SELECT COUNT(*) FROM (SELECT 1 FROM assistants WHERE user_id = $1 LIMIT $2) AS counted"
        }
        Quota::Items => {
            "SELECT COUNT(*) FROM (SELECT 1 FROM store_items WHERE user_id = $1 LIMIT $2) AS counted"
        }
        // The runtime counts runs, sizes are measured, and versions are numbered.
        Quota::ActiveRuns
        | Quota::QueuedRuns
        | Quota::StoredBytes
        | Quota::FileBytes
        | Quota::AssistantVersions => return None,
    })
}

/// Counts the rows of a user, up to one more than `limit`.
pub(crate) async fn count(
    db: &impl ConnectionTrait,
    quota: Quota,
    user: &str,
    limit: u64,
) -> Result<u64, DbErr> {
    let Some(sql) = statement(quota) else {
        return Ok(0);
    };
    let values = [user.into(), bound(limit).into()];
    let statement = Statement::from_sql_and_values(db.get_database_backend(), sql, values);
    let row = db.query_one_raw(statement).await?;
    let row = row.ok_or_else(|| DbErr::Custom("a count returned no row".to_owned()))?;
    Ok(row.try_get_by_index::<i64>(0)?.unsigned_abs())
}

/// Counts the rows of a user, up to one more than `limit`, with a prepared statement.
pub(super) fn prepared_count(
    connection: &Connection,
    quota: Quota,
    user: &str,
    limit: u64,
) -> rusqlite::Result<u64> {
    let Some(sql) = statement(quota) else {
        return Ok(0);
    };
    let mut statement = connection.prepare_cached(sql)?;
    let count: i64 = statement.query_row(params![user, bound(limit)], |row| row.get(0))?;
    Ok(count.unsigned_abs())
}

fn bound(limit: u64) -> i64 {
    i64::try_from(limit.saturating_add(1)).unwrap_or(i64::MAX)
}
