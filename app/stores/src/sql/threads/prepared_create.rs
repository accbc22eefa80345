//! Creation of a thread with prepared statements of SQLite.
//!
//! Threads with an idempotency key, and those whose id is in use, are left to
//! [`super::write::create`].

use deerflow_core::quota::Quota;
use deerflow_domain::threads::{Created, NewThread};
use rusqlite::{Connection, params};

use super::row::{new_row, record};
use super::write::{CREATE_THREAD, CreateRefusal};
use crate::db::fact_index::fact_set;
use crate::db::quotas::QuotaCheck;
use crate::db::tx::Prepared;

const INSERT_FACT: &str = "\
    INSERT INTO thread_facts (thread_id, path, value, user_id) VALUES (?1, ?2, ?3, ?4)";

const FIND: &str = "SELECT 1 FROM threads_meta WHERE thread_id = ?1";

/// Creates a thread.
pub(super) fn create(
    connection: &Connection,
    (new, check): &(NewThread, QuotaCheck),
) -> rusqlite::Result<Prepared<Created, CreateRefusal>> {
    let row = new_row(new);
    let Some(created) = record(row.clone()).ok().filter(|_| new.request.is_none()) else {
        return Ok(Prepared::Unsuited);
    };
    if is_in_use(connection, &row.thread_id)? {
        return Ok(Prepared::Unsuited);
    }
    if let Err(exceeded) = check.before(connection, Quota::Threads)? {
        return Ok(Prepared::Done(Err(exceeded.into())));
    }
    let inserted = connection.prepare_cached(CREATE_THREAD)?.execute(params![
        row.thread_id,
        row.assistant_id,
        row.user_id,
        row.metadata_json,
        row.pinned,
        row.created_at,
        row.ttl_micros,
        row.run_assistant_id,
        row.keep_latest,
    ])?;
    if inserted == 0 {
        return Ok(Prepared::Unsuited);
    }
    for (path, value) in fact_set(&new.metadata) {
        connection.prepare_cached(INSERT_FACT)?.execute(params![
            row.thread_id,
            path,
            value,
            row.user_id
        ])?;
    }
    Ok(Prepared::Done(Ok(Created::New(created))))
}

fn is_in_use(connection: &Connection, thread: &str) -> rusqlite::Result<bool> {
    connection.prepare_cached(FIND)?.exists([thread])
}

#[cfg(test)]
#[path = "prepared_create_tests.rs"]
mod tests;
