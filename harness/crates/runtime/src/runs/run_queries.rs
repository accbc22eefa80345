//! Queries over unfinished runs.

use std::collections::HashMap;
use std::sync::Arc;

use super::queue_reason::{QueueReason, queue_reasons};
use super::visible_runs;
use crate::definition::{RunRecord, RunStatus};
use crate::kernel::{RunError, Runtime};
use crate::ports::UnfinishedRun;
use deerflow_core::actor_context::Owner;
use deerflow_core::ids::{RunId, ThreadId};

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

    /// Returns why these runs of one user wait: the [`QueueReason`] of queued ones, and the kind of
    /// work for which a run of this process waits. Other queued runs of the user may be included.
    pub async fn queue_reasons(
        &self,
        runs: &[RunRecord],
    ) -> Result<HashMap<RunId, &'static str>, RunError> {
        let wait = |run: &RunRecord| {
            let active = self.runtime.registry.active(&run.run_id)?;
            Some((run.run_id.clone(), active.wait.current()?))
        };
        let mut reasons: HashMap<_, _> = runs.iter().filter_map(wait).collect();
        let queued = |run: &&RunRecord| run.status == RunStatus::Pending;
        let Some(first) = runs.iter().find(queued) else {
            return Ok(reasons);
        };
        let owner = first
            .user_id
            .as_ref()
            .map_or(Owner::None, |user| Owner::User(user.clone()));
        let unfinished = self.runtime.ports.query.standing(None, &owner).await?;
        let queued = self.reasons_among(&unfinished).into_iter();
        reasons.extend(queued.map(|(run, reason)| (run, reason.as_str())));
        Ok(reasons)
    }

    /// Returns why the queued ones among all unfinished runs are queued.
    pub fn reasons_among(&self, unfinished: &[UnfinishedRun]) -> HashMap<RunId, QueueReason> {
        let limits = self.runtime.registry.limits.read().per_user;
        queue_reasons(unfinished, limits, self.runtime.ports.clock.now())
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
