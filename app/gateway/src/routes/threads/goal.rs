//! `/threads/{t}/goal`: what the user wants to be reached in a thread.

use axum::Json;
use axum::extract::State;
use deerflow_domain::threads::{Created, NewThread, ThreadRecord};
use harness::ids::ThreadId;
use harness::middlewares::goal::{GOAL, Goal, MAX_CONTINUATIONS, MAX_OBJECTIVE_CHARS};
use harness::runtime::actor_context::{Owner, required_user_id};
use harness::runtime::runs::ThreadStatus;
use serde_json::{Map, Value, json};

use super::update_state::{Update, change_state};
use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{Body, Ids};
use crate::routes::{Answer, App};
use crate::state::GatewayState;

/// `GET`: a thread that does not exist has none.
pub(crate) async fn get(State(state): App, ids: Ids) -> Answer {
    let thread = ids.thread()?;
    let known = state.threads.get(&thread, &Owner::Auto).await?;
    let goal = if known.is_some() { goal_of(&state, &thread).await? } else { None };
    Ok(Json(json!({ "goal": goal })))
}

/// `PUT`: also before the first message, when there is no thread yet.
pub(crate) async fn put(State(state): App, ids: Ids, Body(mut body): Body) -> Answer {
    let thread = ids.thread()?;
    let objective = body.required_text("objective").trim().to_owned();
    let most = body.number("max_continuations", 0..=MAX_CONTINUATIONS).unwrap_or(MAX_CONTINUATIONS);
    body.check()?;
    if objective.is_empty() {
        let _none: Option<()> =
            body.refuse("string_too_short", "objective", "String should have at least 1 character", &Value::from(objective.as_str()));
    }
    if objective.chars().count() > MAX_OBJECTIVE_CHARS {
        let text = format!("String should have at most {MAX_OBJECTIVE_CHARS} characters");
        let _none: Option<()> = body.refuse("string_too_long", "objective", text, &Value::from(objective.as_str()));
    }
    body.finish()?;
    let record = found_or_made(&state, &thread).await?;
    let goal = json!(Goal::new(objective, most, state.clock.now()));
    write(&state, &record, goal.clone(), "Thread has a run in flight. Set the goal after the run finishes.").await?;
    Ok(Json(json!({ "goal": goal })))
}

/// `DELETE`.
pub(crate) async fn delete(State(state): App, ids: Ids) -> Answer {
    let thread = ids.thread()?;
    let record = state.threads.get(&thread, &Owner::Auto).await?;
    if let Some(record) = record
        && goal_of(&state, &thread).await?.is_some()
    {
        write(&state, &record, Value::Null, "Thread has a run in flight. Clear the goal after the run finishes.").await?;
    }
    Ok(Json(json!({ "goal": null })))
}

async fn goal_of(state: &GatewayState, thread: &ThreadId) -> Result<Option<Goal>, ApiError> {
    let snapshot = state.checkpoints.get(thread, None).await?;
    Ok(snapshot.and_then(|snapshot| Goal::of(&snapshot.state)))
}

async fn found_or_made(state: &GatewayState, thread: &ThreadId) -> Result<ThreadRecord, ApiError> {
    let new = NewThread {
        thread_id: thread.clone(),
        user_id: Some(required_user_id().map_err(|error| ApiError::Internal(error.to_string()))?),
        assistant: None,
        assistant_id: None,
        metadata: Map::new(),
        ttl: None,
        request: None,
        at: state.clock.now(),
    };
    match state.threads.create(new).await? {
        Created::New(record) | Created::Existing(record) => Ok(record),
        Created::Taken => Err(ApiError::Conflict(format!("Thread with ID {thread} already exists"))),
        Created::Known(known) => Err(ApiError::KnownRequest(known)),
    }
}

async fn write(state: &GatewayState, record: &ThreadRecord, goal: Value, busy: &str) -> Result<(), ApiError> {
    if record.status == ThreadStatus::Busy {
        return Err(ApiError::Conflict(busy.to_owned()));
    }
    let update = Update { values: Map::from_iter([(GOAL.to_owned(), goal)]), ..Update::default() };
    change_state(state, record, &[update], None, Dialect::DeerFlow).await.map(|_| ())
}
