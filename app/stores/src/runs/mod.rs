//! Runs in the database: one file per verb.

mod calls;
mod commit;
mod create;
mod delete;
mod query;
mod queue;
mod row;
mod split;
mod takeover;
mod unreadable;

use crate::connect::Database;

pub(crate) use commit::ThreadLeft;
pub(crate) use delete::delete_runs_of;
pub(crate) use query::newest_of_user;
pub(crate) use row::{from_json, from_word, is_active, is_owned, json_text, record};
pub use split::SplitCommitStore;

/// Runs over SQL.
#[derive(Debug, Clone)]
pub struct SqlRunStore {
    db: Database,
}

impl SqlRunStore {
    /// A view of `db`.
    pub fn new(db: Database) -> Self {
        Self { db }
    }
}
