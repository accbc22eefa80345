//! Registration of the pending update of a memory.

use deerflow_core::ids::ThreadId;
use deerflow_runtime::user_memory::{MemoryScope, MemoryUpdate};
use rusqlite::{Connection, params};

use crate::db::entity::{micros, plain};
use crate::db::statement_batch::StatementBatch;

macro_rules! update_statement {
    ($values:literal) => {
        concat!(
            "INSERT INTO memory_news (thread_id, user_id, agent, number, tries, due_at) ",
            $values,
            " ON CONFLICT (thread_id, user_id, agent) \
            DO UPDATE SET number = memory_news.number + 1, tries = 0, due_at = excluded.due_at"
        )
    };
}
pub(crate) use update_statement;

const ADD_PENDING: &str = concat!(
    update_statement!("VALUES (?, ?, ?, 1, 0, ?)"),
    " RETURNING 'registered'"
);

/// Adds the statement that registers an update of a thread. A later one replaces its due time.
pub(crate) fn add_update(
    statements: &mut StatementBatch,
    thread: &ThreadId,
    MemoryUpdate { scope, due }: &MemoryUpdate,
) {
    let (user, agent) = key(scope);
    statements.add(
        ADD_PENDING,
        [
            thread.as_str().into(),
            user.into(),
            agent.into(),
            micros(*due).into(),
        ],
    );
}

/// Registers an update of a thread with a prepared statement of SQLite.
pub(crate) fn insert_update(
    connection: &Connection,
    thread: &ThreadId,
    MemoryUpdate { scope, due }: &MemoryUpdate,
) -> rusqlite::Result<()> {
    let (user, agent) = key(scope);
    // A statement that returns a row can only be queried.
    connection
        .prepare_cached(ADD_PENDING)?
        .query_row(params![thread.as_str(), user, agent, micros(*due)], |_| {
            Ok(())
        })
}

/// Returns the key columns of a scope; the default agent has an empty name.
pub(crate) fn key(scope: &MemoryScope) -> (String, String) {
    (
        plain(&scope.user),
        scope.agent.as_deref().map(plain).unwrap_or_default(),
    )
}
