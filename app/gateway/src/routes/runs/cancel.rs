//! `POST .../runs/{r}/cancel` and `POST /runs/cancel`.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use harness::ids::{RunId, ThreadId};
use harness::runtime::runs::store::UnfinishedRun;
use harness::runtime::runs::{CancelAction, RunError};
use serde_json::json;

use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{Body, Ids, Query, missing_issue, parse_run_id, parse_thread_id};
use crate::queries::threads::require_thread;
use crate::requests::bodies::RunsCancel;
use crate::routes::{App, ResponseResult};
use crate::sse::run_location;

/// Wire names of the cancel actions.
pub(crate) const ACTIONS: &[(&str, CancelAction)] = &[
    ("interrupt", CancelAction::Interrupt),
    ("rollback", CancelAction::Rollback),
];

/// Maximum number of runs that one request names.
const MAX_RUN_IDS: usize = 1_000;

pub(crate) async fn cancel(
    State(state): App,
    dialect: Dialect,
    ids: Ids,
    query: Query,
) -> ResponseResult {
    let thread = ids.thread()?;
    let run = ids.run()?;
    let wait = query.flag("wait")?.unwrap_or_default();
    let action = query
        .word("action", ACTIONS)?
        .unwrap_or(CancelAction::Interrupt);
    match dialect {
        Dialect::DeerFlow => drop(require_thread(&state, &thread).await?),
        // On the platform a second cancel of a run is an error; in DeerFlow it succeeds again.
        Dialect::Platform => {
            let known = state.runs.get_run(Some(&thread), &run).await?;
            if let Some(over) = known.filter(|run| run.status.is_terminal()) {
                return Err(ApiError::NotCancellable {
                    run_id: over.run_id,
                    status: over.status.wire(),
                });
            }
        }
    }
    match state.runs.cancel(Some(&thread), &run, action, wait).await {
        Ok(_) => Ok(cancelled(dialect, &thread, &run, wait)),
        Err(RunError::NotFound(_)) if dialect.is_platform() => {
            Err(ApiError::NotFound("No runs found to cancel.".to_owned()))
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns the response of a cancel. Clients read no body of a 202 or a 204; the platform's waiting
/// cancel returns 200 with an empty object.
fn cancelled(dialect: Dialect, thread: &ThreadId, run: &RunId, wait: bool) -> Response {
    match (wait, dialect) {
        (false, _) => StatusCode::ACCEPTED.into_response(),
        (true, Dialect::DeerFlow) => StatusCode::NO_CONTENT.into_response(),
        (true, Dialect::Platform) => {
            (run_location(dialect, thread, run, "join"), Json(json!({}))).into_response()
        }
    }
}

/// Cancels several runs: the named ones of a thread, all active ones of a thread, or all of the
/// user's with a status.
pub(crate) async fn cancel_many(
    State(state): App,
    dialect: Dialect,
    query: Query,
    body: Body<RunsCancel>,
) -> ResponseResult {
    let action = query
        .word("action", ACTIONS)?
        .unwrap_or(CancelAction::Interrupt);
    let sent = body.map().clone();
    let (body, mut issues) = body.parts();
    let (thread, named) = (body.thread_id, body.run_ids);
    let status = body.status.map(|word| word.0);
    issues.limit_items("run_ids", named.as_ref().map_or(0, Vec::len), MAX_RUN_IDS);
    let raw = sent.get("status").cloned().unwrap_or_default();
    if status.is_some() && (thread.is_some() || named.is_some()) {
        let _none: Option<()> = issues.refuse(
            "value_error",
            "status",
            "status cannot be combined with thread_id and run_ids",
            &raw,
        );
    } else if status.is_some() && !dialect.is_platform() {
        let _none: Option<()> = issues.refuse(
            "value_error",
            "status",
            "cancelling across threads is not supported",
            &raw,
        );
    } else if status.is_none() && thread.is_none() && raw.is_null() {
        issues.push(missing_issue("thread_id", &sent));
    }
    issues.finish()?;
    let active = match (status, thread) {
        (Some(requested), _) => {
            let active = state.run_queries().unfinished(None).await?;
            active
                .into_iter()
                .filter(|run| requested.is_none_or(|status| run.status.wire() == status.wire()))
                .map(ids_of)
                .collect()
        }
        (None, thread) => {
            let thread = parse_thread_id(&thread.unwrap_or_default(), dialect, "body")?;
            match named {
                Some(ids) => ids
                    .iter()
                    .map(|id| Ok((thread.clone(), parse_run_id(id, dialect)?)))
                    .collect::<Result<Vec<_>, ApiError>>()?,
                None => state
                    .run_queries()
                    .unfinished(Some(&thread))
                    .await?
                    .into_iter()
                    .map(ids_of)
                    .collect(),
            }
        }
    };
    let mut any_cancelled = false;
    for (thread, run) in active {
        match state.runs.cancel(Some(&thread), &run, action, false).await {
            Ok(_) => any_cancelled = true,
            Err(RunError::NotFound(_) | RunError::NotCancellable { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    if any_cancelled {
        Ok(StatusCode::NO_CONTENT.into_response())
    } else {
        Err(ApiError::NotFound("No runs found to cancel.".to_owned()))
    }
}

fn ids_of(run: UnfinishedRun) -> (ThreadId, RunId) {
    (run.thread_id, run.run_id)
}
