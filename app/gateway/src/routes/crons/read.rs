//! `GET` and `DELETE /runs/crons/{id}`.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use harness::runtime::actor_context::effective_user_id;
use uuid::Uuid;

use super::{cron_id, not_found};
use crate::error::ApiError;
use crate::extract::Ids;
use crate::routes::{Answer, App};
use crate::state::GatewayState;
use crate::wire::cron_json;

pub(crate) async fn get(State(state): App, ids: Ids) -> Answer {
    shown(&state, cron_id(&ids)?).await
}

/// The user's cron as it is now.
pub(super) async fn shown(state: &GatewayState, cron: Uuid) -> Answer {
    let found = state.crons.get(&effective_user_id(), cron).await?;
    Ok(Json(cron_json(&found.ok_or_else(not_found)?)))
}

pub(crate) async fn delete(State(state): App, ids: Ids) -> Result<StatusCode, ApiError> {
    let gone = state
        .crons
        .delete(&effective_user_id(), cron_id(&ids)?)
        .await?;
    gone.then_some(StatusCode::NO_CONTENT).ok_or_else(not_found)
}
