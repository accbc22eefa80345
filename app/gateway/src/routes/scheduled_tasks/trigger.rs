//! `POST /scheduled-tasks/{id}/trigger`.

use axum::Json;
use axum::extract::State;
use deerflow_domain::scheduled_tasks::TriggerError;
use serde_json::json;

use super::task_runs::TaskRuns;
use super::{not_found, require_task};
use crate::error::ApiError;
use crate::extract::Ids;
use crate::routes::{App, JsonResult, run_to_completion};

pub(crate) async fn trigger(State(state): App, ids: Ids) -> JsonResult {
    let task = require_task(&state, &ids).await?;
    let (id, firings) = (task.task_id.clone(), TaskRuns::firings(&state));
    let fire = async move {
        firings.trigger(&task).await.map_err(|error| match error {
            TriggerError::NotFound => not_found(),
            TriggerError::Busy => ApiError::Conflict(
                "The scheduled task, or its thread, already has an active run".to_owned(),
            ),
            TriggerError::Failed(reason) => {
                ApiError::TriggerFailed(format!("Failed to trigger the scheduled task: {reason}"))
            }
            TriggerError::Store(error) => error.into(),
        })
    };
    run_to_completion(&state, "trigger scheduled task", fire).await?;
    Ok(Json(json!({ "id": id, "triggered": true })))
}
