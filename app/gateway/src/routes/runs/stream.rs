//! `POST .../runs/stream`: creates a run and streams its events.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::Response;
use futures_util::stream::BoxStream;
use harness::runtime::runs::RunRecord;
use harness::runtime::runs::store::RunListQuery;
use harness::runtime::stream_bridge::{ResumeFrom, StreamItem};
use tokio::time::Instant;

use super::follow::joined_items;
use super::{
    cancels_on_disconnect, create_for_client, find_created_run, guard, idempotent_spec,
    is_resumable,
};
use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{Body, IdempotencyKey, Ids};
use crate::requests::RunTarget;
use crate::requests::bodies::{RunCreate, ThreadRunCreate};
use crate::routes::idempotency::idempotent;
use crate::routes::{App, ResponseResult};
use crate::sse::{DisconnectGuard, EventStream, Style, event_stream_response, run_location};
use crate::state::GatewayState;
use serde_json::{Map, Value};

pub(crate) async fn stream(
    State(state): App,
    dialect: Dialect,
    ids: Ids,
    idempotency_key: IdempotencyKey,
    headers: HeaderMap,
    body: Body<ThreadRunCreate>,
) -> ResponseResult {
    // Browsers send the page's origin with every POST.
    let is_page = dialect == Dialect::DeerFlow && headers.contains_key(header::ORIGIN);
    begin(
        &state,
        dialect,
        &RunTarget::Thread(ids.thread()?),
        idempotency_key,
        body.into_map(),
        is_page,
    )
    .await
}

pub(crate) async fn stream_stateless(
    State(state): App,
    dialect: Dialect,
    idempotency_key: IdempotencyKey,
    body: Body<RunCreate>,
) -> ResponseResult {
    begin(
        &state,
        dialect,
        &RunTarget::Stateless,
        idempotency_key,
        body.into_map(),
        false,
    )
    .await
}

async fn begin(
    state: &Arc<GatewayState>,
    dialect: Dialect,
    target: &RunTarget,
    idempotency_key: IdempotencyKey,
    body: Map<String, Value>,
    is_page: bool,
) -> ResponseResult {
    let (key, cancels) = (
        idempotency_key.with_body(state, [&body]),
        cancels_on_disconnect(&body),
    );
    let heartbeat = dialect.heartbeat();
    let make = async {
        let spec = idempotent_spec(key.as_ref(), state, dialect, target, body).await?;
        let (runs, since) = (Arc::clone(&state.runs), Instant::now());
        let created = create_for_client(state, spec.on_disconnect, async move {
            runs.create_and_stream(spec, heartbeat).await
        })
        .await?;
        let is_new_chat = is_page && is_only_run(state, &created.run).await;
        Ok(respond(
            state,
            dialect,
            &created.run,
            created.output.items,
            created.guard,
            |events| {
                let events = events.requested_at(since);
                if is_new_chat {
                    events.with_opening_pause()
                } else {
                    events
                }
            },
        ))
    };
    let replay = |created| async move {
        let run = find_created_run(state, dialect, created).await?;
        let joined = state
            .runs
            .join_stream(
                Some(&run.thread_id),
                &run.run_id,
                ResumeFrom::Start,
                heartbeat,
            )
            .await?;
        // Clients retry after a 503, and the stream will open soon. After a 409 they would abandon
        // an active run.
        let missing =
            || ApiError::Unavailable(format!("The stream of run {} is not open yet", run.run_id));
        let items = joined_items(joined, &run).ok_or_else(missing)?;
        let guard = (cancels && !run.status.is_terminal()).then(|| guard(state, &run));
        Ok(respond(state, dialect, &run, items, guard, |events| events))
    };
    idempotent(state, key.as_ref(), make, replay).await
}

/// `true` if the run is the only run of its thread; `false` if that is unknown.
async fn is_only_run(state: &GatewayState, run: &RunRecord) -> bool {
    let query = RunListQuery {
        limit: 2,
        offset: 0,
        status: None,
    };
    match state.runs.list_runs(&run.thread_id, &query).await {
        Ok(runs) => runs.len() == 1,
        // The run is already created, so the stream must not fail because of the pause.
        Err(error) => {
            tracing::warn!(%error, run_id = %run.run_id, "failed to count the runs of a thread");
            false
        }
    }
}

fn respond(
    state: &GatewayState,
    dialect: Dialect,
    run: &RunRecord,
    items: BoxStream<'static, StreamItem>,
    guard: Option<DisconnectGuard>,
    measured: impl FnOnce(EventStream) -> EventStream,
) -> Response {
    let style = Style {
        dialect,
        ids: is_resumable(run, dialect),
    };
    let events = EventStream::new(items, style, state.process.shutdown.clone()).guarded(guard);
    let location = run_location(dialect, &run.thread_id, &run.run_id, "stream");
    event_stream_response(dialect, Some(location), measured(events))
}
