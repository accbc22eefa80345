//! `POST .../runs/{r}/cancel` and `POST /runs/cancel`.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use harness::ids::{RunId, ThreadId};
use harness::runtime::runs::store::RunListQuery;
use harness::runtime::runs::{CancelAction, RunError};
use serde_json::json;

use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{Body, Ids, Query, parse_thread_id};
use crate::reads::require_thread;
use crate::routes::{App, Reply};
use crate::sse::run_location;

const ACTIONS: &[(&str, CancelAction)] = &[("interrupt", CancelAction::Interrupt), ("rollback", CancelAction::Rollback)];

pub(crate) async fn cancel(State(state): App, dialect: Dialect, ids: Ids, query: Query) -> Reply {
    let thread = ids.thread()?;
    let run = ids.run()?;
    let wait = query.flag("wait")?.unwrap_or_default();
    let action = query.word("action", ACTIONS)?.unwrap_or(CancelAction::Interrupt);
    match dialect {
        Dialect::DeerFlow => drop(require_thread(&state, &thread).await?),
        // Here the second cancel of a run finds nothing; in DeerFlow it is as good as the first.
        Dialect::Platform => {
            let known = state.runs.get_run(Some(&thread), &run).await?;
            if let Some(over) = known.filter(|run| run.status.is_terminal()) {
                return Err(ApiError::NotCancellable { run_id: over.run_id, status: over.status.wire() });
            }
        }
    }
    match state.runs.cancel(Some(&thread), &run, action, wait).await {
        Ok(_) => Ok(cancelled(dialect, &thread, &run, wait)),
        Err(RunError::NotFound(_)) if dialect.is_platform() => Err(ApiError::NotFound("No runs found to cancel.".to_owned())),
        Err(error) => Err(error.into()),
    }
}

/// Clients read no body of a 202 or a 204; the platform's waiting cancel is a 200 with an empty object.
fn cancelled(dialect: Dialect, thread: &ThreadId, run: &RunId, wait: bool) -> Response {
    match (wait, dialect) {
        (false, _) => StatusCode::ACCEPTED.into_response(),
        (true, Dialect::DeerFlow) => StatusCode::NO_CONTENT.into_response(),
        (true, Dialect::Platform) => (run_location(dialect, thread, run, "join"), Json(json!({}))).into_response(),
    }
}

/// Several runs of one thread at once: those named, or all that are active.
pub(crate) async fn cancel_many(State(state): App, dialect: Dialect, query: Query, Body(mut body): Body) -> Reply {
    let action = query.word("action", ACTIONS)?.unwrap_or(CancelAction::Interrupt);
    let thread = body.text("thread_id");
    let run_ids = body.texts("run_ids");
    let status = body.word("status", &[("pending", ()), ("running", ()), ("all", ())]);
    if status.is_some() {
        let both = thread.is_some() || run_ids.is_some();
        let text = if both { "status cannot be combined with thread_id and run_ids" } else { "cancelling across threads is not supported" };
        let given = body.value("status").cloned().unwrap_or_default();
        let _none: Option<()> = body.refuse("value_error", "status", text, &given);
    } else if thread.is_none() {
        body.missing("thread_id");
    }
    body.finish()?;
    let thread = parse_thread_id(&thread.unwrap_or_default(), dialect, "body")?;
    let runs = match run_ids {
        Some(ids) => ids.into_iter().filter_map(|id| RunId::parse(id).ok()).collect(),
        None => {
            let active = state.runs.list_runs(&thread, &RunListQuery { limit: 100, ..RunListQuery::default() }).await?;
            active.into_iter().filter(|run| !run.status.is_terminal()).map(|run| run.run_id).collect::<Vec<_>>()
        }
    };
    let mut found = false;
    for run in runs {
        match state.runs.cancel(Some(&thread), &run, action, false).await {
            Ok(_) => found = true,
            Err(RunError::NotFound(_) | RunError::NotCancellable { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    if found { Ok(StatusCode::NO_CONTENT.into_response()) } else { Err(ApiError::NotFound("No runs found to cancel.".to_owned())) }
}
