//! `GET .../runs/{r}/stream`: a run's events, from where the reader was.

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, stream};
use harness::ids::{RunId, ThreadId};
use harness::runtime::runs::{RunRecord, RunStream};
use harness::runtime::stream_bridge::{
    EventId, ResumeFrom, ResumeResult, StreamEvent, StreamItem, TerminalKind,
};
use serde_json::json;

use super::{guard, is_resumable};
use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{Ids, Query};
use crate::input::mode_filter;
use crate::reads::{require_run, require_thread};
use crate::routes::{App, Reply};
use crate::sse::{
    EventFilter, EventStream, Style, event_stream_response, last_event_id, run_location,
};
use crate::state::GatewayState;

pub(crate) async fn follow(
    State(state): App,
    dialect: Dialect,
    ids: Ids,
    query: Query,
    headers: HeaderMap,
) -> Reply {
    let thread = ids.thread()?;
    let run_id = ids.run()?;
    let cursor = last_event_id(&headers)?;
    let cancel_on_disconnect =
        query.flag("cancel_on_disconnect")?.unwrap_or_default() && dialect.is_platform();
    let filter = if dialect.is_platform() {
        mode_filter(&query.list("stream_mode"))
    } else {
        Vec::new()
    };
    require_thread(&state, &thread).await?;
    let run = match require_run(&state, &thread, &run_id, dialect).await {
        Err(ApiError::RunNotFound(_)) if dialect.is_platform() => {
            return Ok(follow_nothing(&state, &thread, &run_id));
        }
        run => run?,
    };
    let resumable = is_resumable(&run, dialect);
    let from = match cursor {
        Some(cursor) if resumable => cursor,
        Some(_) => ResumeFrom::Tail,
        None => dialect.join_default(),
    };
    let joined = state
        .runs
        .join_stream(Some(&thread), &run_id, from, dialect.heartbeat())
        .await?;
    // The web UI knows this text and falls back to the stored history.
    let missing = || {
        ApiError::Conflict(format!(
            "Run {run_id} is not active on this worker and cannot be streamed"
        ))
    };
    let items = items_of(joined, &run).ok_or_else(missing)?;
    let guard = (cancel_on_disconnect && !run.status.is_terminal())
        .then(|| guard(&state, &run).once_read());
    let style = Style {
        dialect,
        ids: resumable,
    };
    let events = EventStream::new(items, style, state.shutdown.clone())
        .filtered(EventFilter::only(filter))
        .guarded(guard);
    // DeerFlow's clients take a Content-Location for a run they made; a join names none.
    let location = dialect
        .is_platform()
        .then(|| run_location(dialect, &thread, &run_id, "stream"));
    Ok(event_stream_response(dialect, location, events))
}

/// What a viewer gets who joined the run: where its events are gone, its end at least. Nothing if it goes on and has no stream here.
pub(super) fn items_of(
    joined: RunStream,
    run: &RunRecord,
) -> Option<BoxStream<'static, StreamItem>> {
    match joined.resume {
        ResumeResult::Unknown if run.status.is_terminal() => {
            Some(stream::iter([StreamItem::End(TerminalKind::End)]).boxed())
        }
        ResumeResult::Unknown => None,
        _ => Some(joined.items),
    }
}

/// The platform answers well for a run that does not exist, and says so in an event.
fn follow_nothing(state: &GatewayState, thread: &ThreadId, run: &RunId) -> Response {
    let dialect = Dialect::Platform;
    let data = Bytes::from(
        json!({ "error": "HTTPException", "message": "404: Run not found" }).to_string(),
    );
    let event = StreamEvent {
        id: EventId { seq: 1, attempt: 1 },
        event: "error".into(),
        data: data.into(),
    };
    let items = stream::iter([
        StreamItem::Event(event),
        StreamItem::End(TerminalKind::Error),
    ])
    .boxed();
    let events = EventStream::new(
        items,
        Style {
            dialect,
            ids: false,
        },
        state.shutdown.clone(),
    );
    event_stream_response(
        dialect,
        Some(run_location(dialect, thread, run, "stream")),
        events,
    )
}
