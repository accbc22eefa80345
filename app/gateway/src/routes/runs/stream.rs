//! `POST .../runs/stream`: a run, and its events as they come.

use std::sync::Arc;

use axum::extract::State;
use harness::runtime::runs::RunSpec;
use tokio::time::Instant;

use super::{is_resumable, made_for_reader, spec_for, spec_on_thread};
use crate::dialect::Dialect;
use crate::extract::{Body, Ids};
use crate::input::RunTarget;
use crate::routes::{App, Reply};
use crate::sse::{EventStream, Style, event_stream_response, run_location};
use crate::state::GatewayState;

pub(crate) async fn stream(State(state): App, dialect: Dialect, ids: Ids, Body(body): Body) -> Reply {
    let spec = spec_on_thread(&state, dialect, &ids, body).await?;
    begin(state, dialect, spec).await
}

pub(crate) async fn stream_stateless(State(state): App, dialect: Dialect, Body(body): Body) -> Reply {
    let spec = spec_for(&state, dialect, &RunTarget::Stateless, body).await?;
    begin(state, dialect, spec).await
}

async fn begin(state: Arc<GatewayState>, dialect: Dialect, spec: RunSpec) -> Reply {
    let (runs, since) = (Arc::clone(&state.runs), Instant::now());
    let heartbeat = dialect.heartbeat();
    let made = made_for_reader(&state, spec.on_disconnect, async move { runs.create_and_stream(spec, heartbeat).await }).await?;
    let style = Style { dialect, ids: is_resumable(&made.run, dialect) };
    let events = EventStream::new(made.way.items, style, state.shutdown.clone()).asked_for(since).guarded(made.guard);
    let location = run_location(dialect, &made.run.thread_id, &made.run.run_id, "stream");
    Ok(event_stream_response(dialect, Some(location), events))
}
