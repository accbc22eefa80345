//! `/admin`: what goes on in the installation, for whoever manages it.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

use super::{Answer, App};
use crate::access::require_admin;
use crate::error::ApiError;
use crate::extract::{Ids, Query};
use crate::webhooks::letter_json;

/// What is said to anybody else.
const ADMINS_ONLY: &str = "Admin privileges required to manage the installation.";
/// How many calls are listed at most, and if nobody says.
pub(crate) const MOST_CALLS: u32 = 1_000;
pub(crate) const USUAL_CALLS: u32 = 100;

/// `GET /admin/webhooks`: calls of all users that were not taken yet, or the dead letters among them.
pub(crate) async fn webhooks(State(state): App, query: Query) -> Answer {
    require_admin(ADMINS_ONLY)?;
    let only_dead = query.flag("dead")?.unwrap_or_default();
    let limit = query
        .number("limit", 1..=MOST_CALLS.into())?
        .unwrap_or(USUAL_CALLS.into());
    let letters = state
        .outbox
        .letters(only_dead, usize::try_from(limit).unwrap_or(usize::MAX))
        .await?;
    Ok(Json(letters.iter().map(letter_json).collect()))
}

/// `POST /admin/webhooks/{run_id}/resend`: has a call sent now, with as many tries as a new one.
pub(crate) async fn resend_webhook(State(state): App, ids: Ids) -> Result<StatusCode, ApiError> {
    require_admin(ADMINS_ONLY)?;
    let run = ids.run()?;
    if state.outbox.resend(&run, state.clock.now()).await? {
        return Ok(StatusCode::ACCEPTED);
    }
    Err(ApiError::NotFound(format!("No call of run {run} is left")))
}
