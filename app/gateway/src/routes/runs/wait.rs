//! `POST .../runs/wait`: a run, and its last state when it is over.

use std::sync::Arc;

use axum::extract::State;
use futures_util::FutureExt;
use harness::runtime::actor_context::scope;
use harness::runtime::runs::{DisconnectMode, RunScope, RunSpec};

use super::{actor, guard, spec_for, spec_on_thread};
use crate::dialect::Dialect;
use crate::extract::{Body, Ids};
use crate::input::RunTarget;
use crate::routes::{App, Reply};
use crate::sse::{run_location, waiting_json};
use crate::state::GatewayState;

pub(crate) async fn wait(State(state): App, dialect: Dialect, ids: Ids, Body(body): Body) -> Reply {
    let spec = spec_on_thread(&state, dialect, &ids, &body).await?;
    begin(state, dialect, spec).await
}

pub(crate) async fn wait_stateless(State(state): App, dialect: Dialect, Body(body): Body) -> Reply {
    let spec = spec_for(&state, dialect, &RunTarget::Stateless, &body).await?;
    begin(state, dialect, spec).await
}

async fn begin(state: Arc<GatewayState>, dialect: Dialect, spec: RunSpec) -> Reply {
    let shutdown = state.shutdown.clone();
    if matches!(spec.scope, RunScope::Stateless { temporary: true }) {
        // The thread goes with the run, so nobody could ask for the outcome afterwards: it is waited for in one call.
        let (run, outcome) = state.runs.create_and_wait(spec).await?;
        let location = run_location(dialect, &run.thread_id, &run.run_id, "join");
        return Ok(waiting_json(dialect, location, std::future::ready(Ok(outcome)).boxed(), None, shutdown));
    }
    let on_disconnect = spec.on_disconnect;
    let run = state.runs.create_background(spec).await?;
    let guard = (on_disconnect == DisconnectMode::Cancel).then(|| guard(&state, &run));
    let location = run_location(dialect, &run.thread_id, &run.run_id, "join");
    // The body is read by the connection, outside of the request's scope.
    let outcome = scope(actor(), async move { state.runs.join_wait(Some(&run.thread_id), &run.run_id).await }).boxed();
    Ok(waiting_json(dialect, location, outcome, guard, shutdown))
}
