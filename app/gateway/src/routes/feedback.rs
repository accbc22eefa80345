//! `/threads/{t}/runs/{r}/feedback`: thumbs up and down.

use axum::Json;
use axum::extract::State;
use deerflow_domain::feedback::{Feedback, Rating};
use harness::ids::{RunId, ThreadId};
use harness::runtime::actor_context::{Owner, effective_user_id};
use serde_json::{Value, json};

use crate::dialect::Dialect;
use crate::error::{ApiError, truncated};
use crate::extract::{Body, Ids, Issues};
use crate::queries::journaled_run::require_journaled_run;
use crate::queries::threads::{require_any_run, require_thread};
use crate::requests::bodies::FeedbackWrite;
use crate::responses::feedback_json;
use crate::routes::{App, JsonResult};
use crate::state::GatewayState;

/// Writes the caller's feedback on the whole run.
pub(crate) async fn put(State(state): App, ids: Ids, body: Body<FeedbackWrite>) -> JsonResult {
    let (body, mut issues) = body.parts();
    let rating = rating(&body.rating, &mut issues);
    issues.finish()?;
    write(&state, &ids, rating, body.comment, None).await
}

/// Writes feedback on the run or on one of its messages.
pub(crate) async fn post(State(state): App, ids: Ids, body: Body<FeedbackWrite>) -> JsonResult {
    let (body, mut issues) = body.parts();
    let rating = rating(&body.rating, &mut issues);
    let message_id = issues.text("message_id", body.message_id);
    issues.finish()?;
    write(&state, &ids, rating, body.comment, message_id).await
}

/// Lists the feedback.
pub(crate) async fn list(State(state): App, ids: Ids) -> JsonResult {
    let (thread, run) = run_of(&state, &ids).await?;
    let rows = state
        .thread_services
        .feedback
        .list(&thread, Some(&run), &Owner::Auto)
        .await?;
    Ok(Json(rows.iter().map(feedback_json).collect()))
}

/// Lists the feedback on a run, found without its thread.
pub(crate) async fn list_of_any_run(State(state): App, ids: Ids) -> JsonResult {
    let run = require_any_run(&state, &ids.run()?).await?;
    let rows = state
        .thread_services
        .feedback
        .list(&run.thread_id, Some(&run.run_id), &Owner::Auto)
        .await?;
    Ok(Json(rows.iter().map(feedback_json).collect()))
}

/// Returns the totals.
pub(crate) async fn stats(State(state): App, ids: Ids) -> JsonResult {
    let (thread, run) = run_of(&state, &ids).await?;
    let rows = state
        .thread_services
        .feedback
        .list(&thread, Some(&run), &Owner::Auto)
        .await?;
    let count = |rating| rows.iter().filter(|row| row.rating == rating).count();
    let (positive, negative) = (count(Rating::Up), count(Rating::Down));
    Ok(Json(
        json!({ "run_id": run, "total": rows.len(), "positive": positive, "negative": negative }),
    ))
}

/// Removes feedback: the caller's, or the one whose id is in the path.
pub(crate) async fn delete(State(state): App, ids: Ids) -> JsonResult {
    let (thread, run) = run_of(&state, &ids).await?;
    let id = Some(ids.text("feedback_id")).filter(|id| !id.is_empty());
    if state
        .thread_services
        .feedback
        .delete(&thread, &run, id, &Owner::Auto)
        .await?
    {
        return Ok(Json(json!({ "success": true })));
    }
    Err(ApiError::NotFound(match id {
        Some(id) => format!("Feedback {} not found", truncated(id)),
        None => "No feedback found for this run".to_owned(),
    }))
}

/// Reads the rating; a number other than 1 and -1 has a different error than a value of another
/// type.
fn rating(raw: &Value, issues: &mut Issues) -> Option<i64> {
    if raw.is_null() {
        return None;
    }
    let number = raw.as_f64().map(|number| {
        if number.abs() == 1.0 {
            number as i64
        } else {
            0
        }
    });
    number.or_else(|| issues.refuse("int_type", "rating", "Input should be a valid integer", raw))
}

async fn write(
    state: &GatewayState,
    ids: &Ids,
    rating: Option<i64>,
    comment: Option<String>,
    message_id: Option<String>,
) -> JsonResult {
    let rating = rating
        .and_then(Rating::from_number)
        .ok_or_else(|| ApiError::BadRequest("rating must be +1 or -1".to_owned()))?;
    let (thread_id, run_id) = run_of(state, ids).await?;
    let feedback = Feedback {
        feedback_id: state.process.ids.random().to_string(),
        thread_id,
        run_id: run_id.clone(),
        user_id: effective_user_id(),
        message_id,
        rating,
        comment,
        created_at: state.process.clock.now(),
    };
    let stored = state
        .thread_services
        .feedback
        .put(feedback)
        .await?
        .ok_or_else(|| ApiError::RunNotFound(run_id.to_string()))?;
    Ok(Json(feedback_json(&stored)))
}

/// Returns the run of the path, if it belongs to the caller.
async fn run_of(state: &GatewayState, ids: &Ids) -> Result<(ThreadId, RunId), ApiError> {
    let thread = ids.thread()?;
    require_thread(state, &thread).await?;
    let run = require_journaled_run(state, &thread, ids.run()?, Dialect::DeerFlow).await?;
    Ok((thread, run.id))
}
