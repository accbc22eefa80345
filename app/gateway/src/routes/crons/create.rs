//! `POST /runs/crons` and `POST /threads/{t}/runs/crons`.

use axum::Json;
use axum::extract::State;
use deerflow_domain::crons::{AfterRun, Cron, CronSearch};
use harness::ids::ThreadId;
use harness::runtime::actor_context::effective_user_id;
use serde_json::Value;
use uuid::Uuid;

use super::{AFTER_RUN, MOST_CRONS, payload_of, read_metadata, read_moment, require_short, schedule_of};
use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{Body, Fields, Ids};
use crate::input::{RunTarget, assistant_uuid};
use crate::reads::require_thread;
use crate::routes::runs::spec_for;
use crate::routes::{Answer, App};
use crate::state::GatewayState;
use crate::wire::cron_json;

pub(crate) async fn create(State(state): App, Body(body): Body) -> Answer {
    make(&state, None, body).await
}

pub(crate) async fn create_on_thread(State(state): App, ids: Ids, Body(body): Body) -> Answer {
    let thread = ids.thread()?;
    require_thread(&state, &thread).await?;
    make(&state, Some(thread), body).await
}

async fn make(state: &GatewayState, thread_id: Option<ThreadId>, mut body: Fields) -> Answer {
    let schedule = body.required_text("schedule");
    let (timezone, end_time) = (body.text("timezone"), read_moment(&mut body, "end_time"));
    let enabled = body.flag("enabled").unwrap_or(true);
    let after = body.word("on_run_completed", AFTER_RUN).unwrap_or(AfterRun::Delete);
    let metadata = read_metadata(&mut body).unwrap_or_default();
    let assistant = body.required_text("assistant_id");
    body.check()?;
    let times = schedule_of(&schedule, timezone.as_deref())?;
    let body = body.into_map();
    require_short(&body)?;
    let user_id = effective_user_id();
    if state.crons.count(&user_id, &CronSearch::default()).await? >= MOST_CRONS {
        return Err(ApiError::Conflict(format!("You have {MOST_CRONS} crons already, which is the most. Delete one first.")));
    }
    let target = thread_id.clone().map_or(RunTarget::Stateless, RunTarget::Thread);
    // A request that could never become a run is refused now, not at every firing.
    spec_for(state, Dialect::Platform, &target, Fields::new("body", body.clone())).await?;

    let (cron_id, now) = (state.ids.random(), state.clock.now());
    let assistant_id = Uuid::parse_str(&assistant).unwrap_or_else(|_| assistant_uuid(&assistant)).to_string();
    let cron = Cron {
        cron_id,
        user_id,
        payload: payload_of(body, &assistant_id, cron_id),
        assistant_id,
        on_run_completed: thread_id.is_none().then_some(after),
        thread_id,
        schedule,
        timezone,
        end_time,
        enabled,
        metadata,
        next_run_date: times.next(now, end_time),
        created_at: now,
        updated_at: now,
    };
    let shown: Value = cron_json(&cron);
    let thread = cron.thread_id.clone();
    match (state.crons.create(cron).await?, thread) {
        (false, Some(thread)) => Err(ApiError::ThreadNotFound(thread.to_string())),
        _ => Ok(Json(shown)),
    }
}
