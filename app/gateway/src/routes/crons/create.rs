//! `POST /runs/crons` and `POST /threads/{t}/runs/crons`.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use deerflow_domain::crons::{AfterRun, Created, Cron, CronSearch};
use harness::ids::ThreadId;
use harness::runtime::actor_context::effective_user_id;
use harness::runtime::runs::store::{CreatedResource, RequestKey};
use serde_json::Value;
use uuid::Uuid;

use super::read::cron_view;
use super::{MAX_CRONS, client_metadata, payload_of, read_moment, require_size, schedule_of};
use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{Body, IdempotencyKey, Ids};
use crate::queries::threads::require_thread;
use crate::requests::bodies::CronCreate;
use crate::requests::{RunTarget, assistant_uuid, check_config};
use crate::responses::cron_json;
use crate::routes::idempotency::idempotent;
use crate::routes::runs::spec_for;
use crate::routes::{App, JsonResult, ResponseResult};
use crate::state::GatewayState;

pub(crate) async fn create(
    State(state): App,
    idempotency_key: IdempotencyKey,
    body: Body<CronCreate>,
) -> ResponseResult {
    create_idempotent(&state, None, idempotency_key, body).await
}

pub(crate) async fn create_on_thread(
    State(state): App,
    ids: Ids,
    idempotency_key: IdempotencyKey,
    body: Body<CronCreate>,
) -> ResponseResult {
    create_idempotent(&state, Some(ids.thread()?), idempotency_key, body).await
}

async fn create_idempotent(
    state: &GatewayState,
    thread: Option<ThreadId>,
    idempotency_key: IdempotencyKey,
    body: Body<CronCreate>,
) -> ResponseResult {
    let key = idempotency_key.with_body(state, [body.map()]);
    let make = async {
        if let Some(thread) = &thread {
            require_thread(state, thread).await?;
        }
        Ok(make(state, thread.clone(), key.clone(), body)
            .await?
            .into_response())
    };
    let replay = |created| async {
        match created {
            CreatedResource::Cron(cron) => Ok(cron_view(state, cron).await?.into_response()),
            other => Err(ApiError::Internal(format!(
                "the idempotency key of a cron refers to {other:?}"
            ))),
        }
    };
    idempotent(state, key.as_ref(), make, replay).await
}

async fn make(
    state: &GatewayState,
    thread_id: Option<ThreadId>,
    request: Option<RequestKey>,
    body: Body<CronCreate>,
) -> JsonResult {
    let request_map = body.map().clone();
    let (body, mut issues) = body.parts();
    let end_time = read_moment(body.end_time, "end_time", &mut issues);
    check_config(
        body.config.unwrap_or_default(),
        &mut issues,
        Dialect::Platform,
    );
    issues.finish()?;
    let (schedule, timezone) = (body.schedule, body.timezone);
    let after = body
        .on_run_completed
        .map_or(AfterRun::Delete, |word| word.0);
    let assistant = body.assistant_id;
    let times = schedule_of(&schedule, timezone.as_deref())?;
    require_size(&request_map)?;
    let user_id = effective_user_id();
    if state
        .schedules
        .crons
        .count(&user_id, &CronSearch::default())
        .await?
        >= MAX_CRONS
    {
        return Err(ApiError::Conflict(format!(
            "You have reached the limit of {MAX_CRONS} crons. Delete one first."
        )));
    }
    let target = thread_id
        .clone()
        .map_or(RunTarget::Stateless, RunTarget::Thread);
    // A request that can never become a run is rejected now, not at every firing.
    spec_for(state, Dialect::Platform, &target, request_map.clone()).await?;

    let (cron_id, now) = (state.process.ids.random(), state.process.clock.now());
    let assistant_id = Uuid::parse_str(&assistant)
        .unwrap_or_else(|_| assistant_uuid(&assistant))
        .to_string();
    let cron = Cron {
        cron_id,
        user_id,
        payload: payload_of(request_map, &assistant_id, cron_id),
        assistant_id,
        on_run_completed: thread_id.is_none().then_some(after),
        thread_id,
        schedule,
        timezone,
        end_time,
        enabled: body.enabled.unwrap_or(true),
        metadata: client_metadata(body.metadata),
        next_run_date: times.next(now, end_time),
        created_at: now,
        updated_at: now,
    };
    let response: Value = cron_json(&cron);
    let thread = cron.thread_id.clone();
    match state.schedules.crons.create(cron, request).await? {
        Created::New => Ok(Json(response)),
        Created::NoThread => Err(ApiError::ThreadNotFound(
            thread.map(|thread| thread.to_string()).unwrap_or_default(),
        )),
        Created::Known(known) => Err(ApiError::KnownRequest(known)),
    }
}
