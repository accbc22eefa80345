//! Queries over unfinished runs.

use std::sync::Arc;

use super::visible_runs;
use crate::kernel::{RunError, Runtime};
use crate::ports::UnfinishedRun;
use deerflow_core::actor_context::Owner;
use deerflow_core::ids::ThreadId;

/// Queries over unfinished runs, for batch operations and for operators.
#[derive(Debug, Clone)]
pub struct RunQueries {
    runtime: Arc<Runtime>,
}

impl RunQueries {
    /// Creates the handle of a runtime.
    pub fn new(runtime: &Arc<Runtime>) -> Self {
        Self {
            runtime: runtime.clone(),
        }
    }

    /// Lists the bound actor's unfinished runs of one thread or of all threads, oldest first.
    pub async fn unfinished(
        &self,
        thread: Option<&ThreadId>,
    ) -> Result<Vec<UnfinishedRun>, RunError> {
        visible_runs::unfinished(thread, &self.runtime).await
    }

    /// Lists the unfinished runs of all users, oldest first.
    pub async fn unfinished_of_all_users(&self) -> Result<Vec<UnfinishedRun>, RunError> {
        Ok(self
            .runtime
            .ports
            .query
            .standing(None, &Owner::None)
            .await?)
    }
}
