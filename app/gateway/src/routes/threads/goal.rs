//! `/threads/{t}/goal`: the goal that the user sets for a thread.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use harness::middlewares::goal::{GoalError, Goals, MAX_CONTINUATIONS, ObjectiveIssue};
use harness::runtime::actor_context::required_user_id;
use serde_json::{Value, json};

use super::update::refused;
use crate::error::ApiError;
use crate::extract::{Body, Ids};
use crate::queries::thread_index::GatewayThreadIndex;
use crate::requests::bodies::GoalPut;
use crate::routes::{App, JsonResult};
use crate::state::GatewayState;

/// `GET`: a thread that does not exist has no goal.
pub(crate) async fn get(State(state): App, ids: Ids) -> JsonResult {
    let thread = ids.thread()?;
    let goals_of_user = UserGoals::of(state)?;
    Ok(Json(json!(
        goals_of_user
            .goals()
            .get(&thread)
            .await
            .map_err(|error| api_error(error, "Read"))?
    )))
}

/// `PUT`: also allowed before the first message, when the thread does not exist yet.
pub(crate) async fn put(State(state): App, ids: Ids, body: Body<GoalPut>) -> JsonResult {
    let thread = ids.thread()?;
    let (body, mut issues) = body.parts();
    issues.check()?;
    let objective = body.objective.trim().to_owned();
    let most = body.max_continuations.unwrap_or(MAX_CONTINUATIONS);
    if let Some(issue) = ObjectiveIssue::of(&objective) {
        let kind = match issue {
            ObjectiveIssue::Blank => "string_too_short",
            ObjectiveIssue::TooLong => "string_too_long",
        };
        let _none: Option<()> = issues.refuse(
            kind,
            "objective",
            issue.to_string(),
            &Value::from(objective.as_str()),
        );
    }
    issues.finish()?;
    let goals_of_user = UserGoals::of(state)?;
    Ok(Json(json!(
        goals_of_user
            .goals()
            .set(&thread, &objective, most)
            .await
            .map_err(|error| api_error(error, "Set"))?
    )))
}

/// `DELETE`.
pub(crate) async fn delete(State(state): App, ids: Ids) -> JsonResult {
    let thread = ids.thread()?;
    let goals_of_user = UserGoals::of(state)?;
    Ok(Json(json!(
        goals_of_user
            .goals()
            .clear(&thread)
            .await
            .map_err(|error| api_error(error, "Clear"))?
    )))
}

/// The user's goals, and access to the threads in which they are stored.
struct UserGoals {
    user: String,
    index: GatewayThreadIndex,
}

impl UserGoals {
    fn of(state: Arc<GatewayState>) -> Result<Self, ApiError> {
        let user = required_user_id().map_err(|error| ApiError::Internal(error.to_string()))?;
        Ok(Self {
            user,
            index: GatewayThreadIndex(state),
        })
    }

    fn goals(&self) -> Goals<'_> {
        let state = &self.index.0;
        Goals {
            user: &self.user,
            threads: &self.index,
            checkpoints: &*state.thread_services.checkpoints,
            clock: &*state.process.clock,
            ids: &*state.process.ids,
        }
    }
}

/// Converts the error of a goal operation; `what` names the operation.
fn api_error(error: GoalError, what: &str) -> ApiError {
    match error {
        GoalError::Busy(_) => ApiError::Conflict(format!(
            "Thread has a run in flight. {what} the goal after the run finishes."
        )),
        GoalError::Contended(_) => ApiError::Conflict(
            "Thread is being changed by other requests. Update state again later.".to_owned(),
        ),
        GoalError::Objective(_) => ApiError::Unprocessable(error.to_string()),
        GoalError::Thread(error) => error.into(),
        GoalError::Checkpoint(error) => error.into(),
        GoalError::Put(error) => refused(error),
        other => ApiError::Internal(other.to_string()),
    }
}
