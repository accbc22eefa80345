//! `POST .../runs/stream`: a run, and its events as they come.

use axum::extract::State;
use harness::runtime::runs::{DisconnectMode, RunSpec};

use super::{guard, is_resumable, spec_for, spec_on_thread};
use crate::dialect::Dialect;
use crate::extract::{Body, Ids};
use crate::input::RunTarget;
use crate::routes::{App, Reply};
use crate::sse::{EventStream, Style, event_stream_response, run_location};
use crate::state::GatewayState;

pub(crate) async fn stream(State(state): App, dialect: Dialect, ids: Ids, Body(body): Body) -> Reply {
    let spec = spec_on_thread(&state, dialect, &ids, &body).await?;
    begin(&state, dialect, spec).await
}

pub(crate) async fn stream_stateless(State(state): App, dialect: Dialect, Body(body): Body) -> Reply {
    let spec = spec_for(&state, dialect, &RunTarget::Stateless, &body).await?;
    begin(&state, dialect, spec).await
}

async fn begin(state: &GatewayState, dialect: Dialect, spec: RunSpec) -> Reply {
    let on_disconnect = spec.on_disconnect;
    let (run, stream) = state.runs.create_and_stream(spec, dialect.heartbeat()).await?;
    let style = Style { dialect, ids: is_resumable(&run, dialect) };
    let guard = (on_disconnect == DisconnectMode::Cancel).then(|| guard(state, &run));
    let events = EventStream::new(stream.items, style, state.shutdown.clone()).guarded(guard);
    let location = run_location(dialect, &run.thread_id, &run.run_id, "stream");
    Ok(event_stream_response(dialect, Some(location), events))
}
