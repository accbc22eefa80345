//! Runs whose rows a thread's journal has: its own, and those copied into a branch.

use deerflow_domain::branches::is_copied_run;
use harness::ids::{RunId, ThreadId};
use harness::runtime::actor_context::Owner;
use harness::runtime::runs::RunRecord;
use harness::runtime::runs::store::EventQuery;

use super::threads::require_run;
use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::state::GatewayState;

/// Run of a journal.
pub(crate) struct JournaledRun {
    /// Id of the run.
    pub(crate) id: RunId,
    /// Record of the run; `None` if it was copied into a branch.
    pub(crate) record: Option<RunRecord>,
}

/// Returns a run of the thread, or a run that was copied into this branch.
pub(crate) async fn require_journaled_run(
    state: &GatewayState,
    thread: &ThreadId,
    id: RunId,
    dialect: Dialect,
) -> Result<JournaledRun, ApiError> {
    if !is_copied_run(thread, &id) {
        let record = Some(require_run(state, thread, &id, dialect).await?);
        return Ok(JournaledRun { id, record });
    }
    let query = EventQuery {
        run_id: Some(id.clone()),
        limit: 1,
        ..EventQuery::default()
    };
    let rows = state
        .run_services
        .events
        .list(thread, &query, &Owner::Auto)
        .await?;
    if rows.is_empty() {
        return Err(ApiError::RunNotFound(id.to_string()));
    }
    Ok(JournaledRun { id, record: None })
}
