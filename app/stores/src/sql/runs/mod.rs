//! Run store over SQL: one file per operation.

mod admission_function;
mod busy_thread;
mod calls;
mod commit;
mod commit_function;
mod commit_guard;
mod commit_outcome;
mod create;
mod delete;
mod large_texts;
mod prepared_admission;
mod prepared_commit;
mod query;
mod queue;
mod row;
mod serialized_run;
mod split;
mod stored_request;
mod takeover;
mod unreadable;
mod user_runs;

#[cfg(test)]
mod function_tests;
#[cfg(test)]
mod prepared_tests;

use crate::db::connect::Database;

pub(crate) use delete::delete_thread_runs;
pub(crate) use large_texts::load_one;
pub(crate) use query::newest_of_user;
pub(crate) use row::record;
pub use split::SplitCommitStore;
pub(crate) use user_runs::count_unfinished;

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
