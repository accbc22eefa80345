//! `POST .../runs/wait`: a run, and its last state when it is over.

use std::sync::Arc;

use axum::extract::State;
use futures_util::FutureExt;
use harness::runtime::runs::RunSpec;

use super::{made_for_reader, spec_for, spec_on_thread};
use crate::dialect::Dialect;
use crate::extract::{Body, Ids};
use crate::input::RunTarget;
use crate::routes::{App, Reply};
use crate::sse::{run_location, waiting_json};
use crate::state::GatewayState;

pub(crate) async fn wait(State(state): App, dialect: Dialect, ids: Ids, Body(body): Body) -> Reply {
    let spec = spec_on_thread(&state, dialect, &ids, body).await?;
    begin(state, dialect, spec).await
}

pub(crate) async fn wait_stateless(State(state): App, dialect: Dialect, Body(body): Body) -> Reply {
    let spec = spec_for(&state, dialect, &RunTarget::Stateless, body).await?;
    begin(state, dialect, spec).await
}

async fn begin(state: Arc<GatewayState>, dialect: Dialect, spec: RunSpec) -> Reply {
    let runs = Arc::clone(&state.runs);
    let made = made_for_reader(&state, spec.on_disconnect, async move { runs.create_for_waiting(spec).await }).await?;
    let location = run_location(dialect, &made.run.thread_id, &made.run.run_id, "join");
    Ok(waiting_json(dialect, location, made.way.map(Ok).boxed(), made.guard, state.shutdown.clone()))
}
