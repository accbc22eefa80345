//! `GET .../runs/{r}/join`: waits for a run's last state; DeerFlow's clients can request its events
//! instead.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, header};
use futures_util::FutureExt;
use futures_util::future::ready;
use harness::runtime::actor_context::scope;
use harness::runtime::runs::RunError;

use super::{actor, follow, guard};
use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{Ids, Query};
use crate::queries::threads::{require_run, require_thread};
use crate::routes::{App, ResponseResult};
use crate::sse::{ended_json, run_location, waiting_json};

pub(crate) async fn join(
    State(state): App,
    dialect: Dialect,
    ids: Ids,
    query: Query,
    headers: HeaderMap,
) -> ResponseResult {
    let events = headers
        .get(header::ACCEPT)
        .and_then(|accept| accept.to_str().ok())
        .is_some_and(|accept| accept.contains("text/event-stream"));
    if events && dialect == Dialect::DeerFlow {
        return follow(State(state), dialect, ids, query, headers).await;
    }
    let thread = ids.thread()?;
    let run_id = ids.run()?;
    let cancels = query.flag("cancel_on_disconnect")?.unwrap_or_default() && dialect.is_platform();
    require_thread(&state, &thread).await?;
    let location = run_location(dialect, &thread, &run_id, "join");
    let shutdown = state.process.shutdown.clone();
    let run = match require_run(&state, &thread, &run_id, dialect).await {
        // The platform returns 200 for a run that does not exist, and reports the error in the
        // body.
        Err(ApiError::RunNotFound(_)) if dialect.is_platform() => {
            let outcome = ready(Err(RunError::NotFound(run_id))).boxed();
            return Ok(waiting_json(dialect, location, outcome, None, shutdown));
        }
        run => run?,
    };
    if run.status.is_terminal() {
        let outcome = state.runs.join_wait(Some(&run.thread_id), &run.run_id);
        return Ok(ended_json(dialect, location, outcome.await));
    }
    let guard = cancels.then(|| guard(&state, &run).armed_when_read());
    let runs = Arc::clone(&state.runs);
    let outcome = scope(actor(), async move {
        runs.join_wait(Some(&run.thread_id), &run.run_id).await
    })
    .boxed();
    Ok(waiting_json(dialect, location, outcome, guard, shutdown))
}
