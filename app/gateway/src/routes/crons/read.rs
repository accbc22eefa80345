//! `GET` and `DELETE /runs/crons/{id}`.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use harness::runtime::actor_context::effective_user_id;
use uuid::Uuid;

use super::{cron_id, not_found};
use crate::error::ApiError;
use crate::extract::Ids;
use crate::responses::cron_json;
use crate::routes::{App, JsonResult};
use crate::state::GatewayState;

pub(crate) async fn get(State(state): App, ids: Ids) -> JsonResult {
    cron_view(&state, cron_id(&ids)?).await
}

/// Returns the user's cron.
pub(super) async fn cron_view(state: &GatewayState, cron: Uuid) -> JsonResult {
    let existing = state
        .schedules
        .crons
        .get(&effective_user_id(), cron)
        .await?;
    Ok(Json(cron_json(&existing.ok_or_else(not_found)?)))
}

pub(crate) async fn delete(State(state): App, ids: Ids) -> Result<StatusCode, ApiError> {
    let deleted = state
        .schedules
        .crons
        .delete(&effective_user_id(), cron_id(&ids)?)
        .await?;
    deleted
        .then_some(StatusCode::NO_CONTENT)
        .ok_or_else(not_found)
}
