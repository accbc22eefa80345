//! `/scheduled-tasks`: prompts that run once or repeatedly.

mod change;
mod create;
mod input;
mod read;
mod task_runs;
mod trigger;

pub(crate) use change::{delete, patch, pause, resume};
pub(crate) use create::create;
pub(crate) use read::{get, list, list_on_thread, runs};
pub use task_runs::TaskRuns;
pub(crate) use trigger::trigger;

use deerflow_domain::scheduled_tasks::ScheduledTask;
use harness::runtime::actor_context::effective_user_id;

use crate::error::ApiError;
use crate::extract::Ids;
use crate::state::GatewayState;

/// The task does not exist or belongs to another user.
fn not_found() -> ApiError {
    ApiError::NotFound("Scheduled task not found".to_owned())
}

/// The thread does not exist or belongs to another user.
fn thread_not_found() -> ApiError {
    ApiError::NotFound("Thread not found".to_owned())
}

/// Returns the caller's task of the path.
async fn require_task(state: &GatewayState, ids: &Ids) -> Result<ScheduledTask, ApiError> {
    let tasks = &state.schedules.tasks;
    let found = tasks.get(&effective_user_id(), ids.text("task_id")).await?;
    found.ok_or_else(not_found)
}
