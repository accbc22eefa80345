//! `/admin/webhooks`: undelivered webhook calls.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;

use super::ADMINS_ONLY;
use crate::error::ApiError;
use crate::extract::{Ids, Query};
use crate::guard::auth::require_admin;
use crate::routes::{App, JsonResult};
use crate::state::RunServices;
use crate::webhooks::dead_letter_json;

/// Maximum and default number of listed calls.
pub(crate) const MAX_CALLS: u32 = 1_000;
pub(crate) const DEFAULT_CALLS: u32 = 100;

/// `GET /admin/webhooks`: undelivered calls of all users, or only the dead letters.
pub(crate) async fn list(State(run_services): State<RunServices>, query: Query) -> JsonResult {
    require_admin(ADMINS_ONLY)?;
    let only_dead = query.flag("dead")?.unwrap_or_default();
    let limit = query
        .number("limit", 1..=MAX_CALLS.into())?
        .unwrap_or(DEFAULT_CALLS.into());
    let entries = run_services
        .outbox
        .letters(only_dead, usize::try_from(limit).unwrap_or(usize::MAX))
        .await?;
    Ok(Json(entries.iter().map(dead_letter_json).collect()))
}

/// `POST /admin/webhooks/{run_id}/resend`: sends a call now, with a new retry budget.
pub(crate) async fn resend(State(state): App, ids: Ids) -> Result<StatusCode, ApiError> {
    require_admin(ADMINS_ONLY)?;
    let run = ids.run()?;
    if state
        .run_services
        .outbox
        .resend(&run, state.process.clock.now())
        .await?
    {
        return Ok(StatusCode::ACCEPTED);
    }
    Err(ApiError::NotFound(format!(
        "Run {run} has no undelivered webhook call"
    )))
}
