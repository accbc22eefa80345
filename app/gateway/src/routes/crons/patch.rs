//! `PATCH /runs/crons/{id}`.

use axum::Json;
use axum::extract::State;
use deerflow_domain::crons::Cron;
use harness::json_size::merge_within;
use harness::runtime::actor_context::effective_user_id;
use serde_json::{Map, Value};

use super::{
    client_metadata, cron_id, not_found, read_moment, request_of, require_size, schedule_of,
};
use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{Body, Ids, RequestBody};
use crate::requests::bodies::CronPatch;
use crate::requests::{RunTarget, check_config};
use crate::responses::cron_json;
use crate::routes::runs::spec_for;
use crate::routes::{App, JsonResult};
use crate::state::GatewayState;

/// Maximum number of attempts after concurrent changes.
const MAX_ATTEMPTS: usize = 5;

pub(crate) async fn patch(State(state): App, ids: Ids, body: Body<CronPatch>) -> JsonResult {
    let (id, user) = (cron_id(&ids)?, effective_user_id());
    let mut sent = body.into_map();
    let changes: Map<String, Value> = CronPatch::layout()
        .names()
        .iter()
        .filter_map(|field| sent.shift_remove_entry(field))
        .collect();
    if changes.is_empty() {
        return Err(ApiError::BadRequest(
            "At least one field must be provided for update".to_owned(),
        ));
    }
    for _ in 0..MAX_ATTEMPTS {
        let existing = state
            .schedules
            .crons
            .get(&user, id)
            .await?
            .ok_or_else(not_found)?;
        let seen = existing.updated_at;
        let (changed, reschedule) = changed(&state, existing, changes.clone()).await?;
        let cron_view = cron_json(&changed);
        if state
            .schedules
            .crons
            .update(changed, seen, reschedule)
            .await?
        {
            return Ok(Json(cron_view));
        }
    }
    Err(ApiError::Conflict(
        "The cron is being changed by other requests".to_owned(),
    ))
}

/// Returns the changed cron, and `true` if its schedule changed.
async fn changed(
    state: &GatewayState,
    mut cron: Cron,
    changes: Map<String, Value>,
) -> Result<(Cron, bool), ApiError> {
    let (body, mut issues) = Body::<CronPatch>::new(changes.clone(), Dialect::Platform).parts();
    let reschedule = ["schedule", "timezone", "end_time", "enabled"]
        .iter()
        .any(|key| changes.contains_key(*key));
    let is_cleared = changes.get("end_time").is_some_and(Value::is_null);
    cron.schedule = body.schedule.unwrap_or(cron.schedule);
    cron.timezone = body.timezone.or(cron.timezone);
    cron.end_time = read_moment(body.end_time, "end_time", &mut issues)
        .or(cron.end_time.filter(|_| !is_cleared));
    cron.enabled = body.enabled.unwrap_or(cron.enabled);
    let after = body.on_run_completed.map(|word| word.0);
    cron.on_run_completed = after
        .filter(|_| cron.thread_id.is_none())
        .or(cron.on_run_completed);
    let limit = state.info.field_limits().max_metadata_bytes;
    let entries = client_metadata(body.metadata);
    cron.metadata = merge_within("metadata", cron.metadata, entries, Some(limit))?;
    let has_config = body.config.is_some();
    check_config(
        body.config.unwrap_or_default(),
        &mut issues,
        Dialect::Platform,
    );
    issues.finish()?;
    let times = schedule_of(&cron.schedule, cron.timezone.as_deref())?;
    cron.payload.extend(changes);
    if has_config {
        cron.payload = super::payload_of(
            std::mem::take(&mut cron.payload),
            &cron.assistant_id,
            cron.cron_id,
        );
    }
    require_size(&cron.payload)?;
    let target = cron
        .thread_id
        .clone()
        .map_or(RunTarget::Stateless, RunTarget::Thread);
    spec_for(
        state,
        Dialect::Platform,
        &target,
        request_of(cron.payload.clone()),
    )
    .await?;
    // The stored timestamp may be later than this process's clock, and changes are distinguished by
    // timestamp.
    let now = state
        .process
        .clock
        .now()
        .max(cron.updated_at + chrono::TimeDelta::microseconds(1));
    cron.updated_at = now;
    if reschedule {
        cron.next_run_date = times.next(now, cron.end_time);
    }
    Ok((cron, reschedule))
}
