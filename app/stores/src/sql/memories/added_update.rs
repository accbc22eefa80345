//! Pending update of a memory that a run adds for its thread.

use chrono::{DateTime, Utc};
use deerflow_core::ids::ThreadId;
use deerflow_runtime::runs::store::RunCommit;
use deerflow_runtime::user_memory::MemoryScope;
use rusqlite::{Connection, params};

use crate::db::entity::{micros, plain};
use crate::db::statement_batch::StatementBatch;

macro_rules! insert_update {
    ($values:literal) => {
        concat!(
            "INSERT INTO memory_news (thread_id, user_id, agent, number, tries, due_at) ",
            $values,
            " ON CONFLICT (thread_id, user_id, agent) \
            DO UPDATE SET number = memory_news.number + 1, tries = 0, due_at = excluded.due_at"
        )
    };
}
pub(crate) use insert_update;

const ADD_PENDING: &str = concat!(
    insert_update!("VALUES (?, ?, ?, 1, 0, ?)"),
    " RETURNING 'noted'"
);

/// Row of a pending update. A later one of the same thread replaces its due time.
#[derive(Debug)]
pub(crate) struct AddedUpdate {
    pub(crate) thread: String,
    pub(crate) user: String,
    pub(crate) agent: String,
    pub(crate) due_at: i64,
}

impl AddedUpdate {
    pub(super) fn new(thread: &ThreadId, scope: &MemoryScope, due: DateTime<Utc>) -> Self {
        let (user, agent) = key(scope);
        Self {
            thread: thread.as_str().to_owned(),
            user,
            agent,
            due_at: micros(due),
        }
    }

    /// Returns the update that a commit registers.
    pub(crate) fn of(commit: &RunCommit) -> Option<Self> {
        let update = commit.memory_update.as_ref()?;
        Some(Self::new(&commit.thread_id, &update.scope, update.due))
    }

    /// Adds the statement that inserts the row.
    pub(crate) fn add_to(&self, statements: &mut StatementBatch) {
        statements.add(
            ADD_PENDING,
            [
                self.thread.as_str().into(),
                self.user.as_str().into(),
                self.agent.as_str().into(),
                self.due_at.into(),
            ],
        );
    }

    /// Inserts the row with a prepared statement of SQLite.
    pub(crate) fn insert(&self, connection: &Connection) -> rusqlite::Result<()> {
        let values = params![self.thread, self.user, self.agent, self.due_at];
        // A statement that returns a row can only be queried.
        connection
            .prepare_cached(ADD_PENDING)?
            .query_row(values, |_| Ok(()))
    }
}

/// Returns the key columns of a scope; the default agent has an empty name.
pub(super) fn key(scope: &MemoryScope) -> (String, String) {
    (
        plain(&scope.user),
        scope.agent.as_deref().map(plain).unwrap_or_default(),
    )
}
