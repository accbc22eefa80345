//! Run store over SQL: one file per operation.

mod calls;
mod commit;
mod commit_guard;
mod create;
mod delete;
mod query;
mod queue;
mod row;
mod split;
mod takeover;
mod unreadable;

use crate::db::connect::Database;

pub(crate) use commit::ThreadOutcome;
pub(crate) use delete::delete_thread_runs;
pub(crate) use query::newest_of_user;
pub(crate) use row::{from_json, from_word, is_active, is_owned, json_text, record};
pub use split::SplitCommitStore;

/// Run store over SQL.
#[derive(Debug, Clone)]
pub struct SqlRunStore {
    db: Database,
}

impl SqlRunStore {
    /// Creates a store over `db`.
    pub fn new(db: Database) -> Self {
        Self { db }
    }
}
