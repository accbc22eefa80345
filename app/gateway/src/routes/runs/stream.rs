//! `POST .../runs/stream`: a run, and its events as they come.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::Response;
use futures_util::stream::BoxStream;
use harness::runtime::runs::RunRecord;
use harness::runtime::runs::store::RunListQuery;
use harness::runtime::stream_bridge::{ResumeFrom, StreamItem};
use tokio::time::Instant;

use super::follow::items_of;
use super::{cancels_on_disconnect, guard, is_resumable, made_for_reader, made_run, spec_known_by};
use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{Body, Fields, Ids};
use crate::input::RunTarget;
use crate::repeats::{Repeatable, once};
use crate::routes::{App, Reply};
use crate::sse::{DisconnectGuard, EventStream, Style, event_stream_response, run_location};
use crate::state::GatewayState;

pub(crate) async fn stream(
    State(state): App,
    dialect: Dialect,
    ids: Ids,
    asked: Repeatable,
    headers: HeaderMap,
    Body(body): Body,
) -> Reply {
    // Browsers name the page's origin whenever they post.
    let is_page = dialect == Dialect::DeerFlow && headers.contains_key(header::ORIGIN);
    begin(
        &state,
        dialect,
        &RunTarget::Thread(ids.thread()?),
        asked,
        body,
        is_page,
    )
    .await
}

pub(crate) async fn stream_stateless(
    State(state): App,
    dialect: Dialect,
    asked: Repeatable,
    Body(body): Body,
) -> Reply {
    begin(&state, dialect, &RunTarget::Stateless, asked, body, false).await
}

async fn begin(
    state: &Arc<GatewayState>,
    dialect: Dialect,
    target: &RunTarget,
    asked: Repeatable,
    body: Fields,
    is_page: bool,
) -> Reply {
    let (key, cancels) = (
        asked.with_body(state, [body.map()]),
        cancels_on_disconnect(&body),
    );
    let heartbeat = dialect.heartbeat();
    let make = async {
        let spec = spec_known_by(key.as_ref(), state, dialect, target, body).await?;
        let (runs, since) = (Arc::clone(&state.runs), Instant::now());
        let made = made_for_reader(state, spec.on_disconnect, async move {
            runs.create_and_stream(spec, heartbeat).await
        })
        .await?;
        let is_new_chat = is_page && is_only_run(state, &made.run).await;
        Ok(respond(
            state,
            dialect,
            &made.run,
            made.way.items,
            made.guard,
            |events| {
                let events = events.asked_for(since);
                if is_new_chat {
                    events.for_a_new_chat()
                } else {
                    events
                }
            },
        ))
    };
    let again = |made| async move {
        let run = made_run(state, dialect, made).await?;
        let joined = state
            .runs
            .join_stream(
                Some(&run.thread_id),
                &run.run_id,
                ResumeFrom::Start,
                heartbeat,
            )
            .await?;
        // Clients repeat on a 503, and the stream opens in a moment: on a 409 they would give up a run that goes on.
        let missing =
            || ApiError::Unavailable(format!("The stream of run {} is not open yet", run.run_id));
        let items = items_of(joined, &run).ok_or_else(missing)?;
        let guard = (cancels && !run.status.is_terminal()).then(|| guard(state, &run));
        Ok(respond(state, dialect, &run, items, guard, |events| events))
    };
    once(state, key.as_ref(), make, again).await
}

/// Whether the run is the first of its thread, as far as is known.
async fn is_only_run(state: &GatewayState, run: &RunRecord) -> bool {
    let query = RunListQuery {
        limit: 2,
        offset: 0,
        status: None,
    };
    match state.runs.list_runs(&run.thread_id, &query).await {
        Ok(runs) => runs.len() == 1,
        // The run is made and goes on: its stream is worth more than a pause in it.
        Err(error) => {
            tracing::warn!(%error, run_id = %run.run_id, "the runs of a thread could not be counted");
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
    let events = EventStream::new(items, style, state.shutdown.clone()).guarded(guard);
    let location = run_location(dialect, &run.thread_id, &run.run_id, "stream");
    event_stream_response(dialect, Some(location), measured(events))
}
