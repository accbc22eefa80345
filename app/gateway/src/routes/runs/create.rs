//! `POST /threads/{t}/runs` and `POST /runs`: a run in the background.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use harness::runtime::runs::RunSpec;

use super::{spec_for, spec_on_thread};
use crate::dialect::Dialect;
use crate::extract::{Body, Ids};
use crate::input::RunTarget;
use crate::routes::{App, Reply};
use crate::sse::run_location;
use crate::state::GatewayState;
use crate::wire::run_json;

pub(crate) async fn create(State(state): App, dialect: Dialect, ids: Ids, Body(body): Body) -> Reply {
    let spec = spec_on_thread(&state, dialect, &ids, body).await?;
    begin(&state, dialect, spec).await
}

pub(crate) async fn create_stateless(State(state): App, dialect: Dialect, Body(body): Body) -> Reply {
    let spec = spec_for(&state, dialect, &RunTarget::Stateless, body).await?;
    begin(&state, dialect, spec).await
}

async fn begin(state: &GatewayState, dialect: Dialect, spec: RunSpec) -> Reply {
    let run = state.runs.create_background(spec).await?;
    let [content_location, _] = run_location(dialect, &run.thread_id, &run.run_id, "stream");
    Ok(([content_location], Json(run_json(&run, dialect))).into_response())
}
