//! Opens the rows of users that are deleted with their accounts.

use std::sync::Arc;

use deerflow_domain::accounts::UserData;
use deerflow_stores::{Database, SqlUserRows};

/// Rows of users besides those of threads.
#[derive(Debug)]
pub(super) struct UserRows {
    /// Rows that start runs or lead messages to the user.
    pub(super) sources: Vec<Arc<dyn UserData>>,
    /// Rows that stay when the user has no threads any more.
    pub(super) rest: Vec<Arc<dyn UserData>>,
}

impl UserRows {
    pub(super) fn of(db: &Database) -> Self {
        Self {
            sources: SqlUserRows::sources(db),
            rest: SqlUserRows::rest(db),
        }
    }
}
