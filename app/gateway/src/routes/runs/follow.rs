//! `GET .../runs/{r}/stream`: a run's events from the client's cursor on.

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
use crate::queries::threads::{require_run, require_thread};
use crate::requests::mode_filter;
use crate::routes::{App, ResponseResult};
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
) -> ResponseResult {
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
            return Ok(follow_missing_run(&state, &thread, &run_id));
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
    // The web UI recognises this text and falls back to the stored history.
    let missing = || {
        ApiError::Conflict(format!(
            "Run {run_id} is not active on this worker and cannot be streamed"
        ))
    };
    let items = joined_items(joined, &run).ok_or_else(missing)?;
    let guard = (cancel_on_disconnect && !run.status.is_terminal())
        .then(|| guard(&state, &run).armed_when_read());
    let style = Style {
        dialect,
        ids: resumable,
    };
    let events = EventStream::new(items, style, state.process.shutdown.clone())
        .filtered(EventFilter::only(filter))
        .guarded(guard);
    // DeerFlow's clients interpret `Content-Location` as a run they created, so a join has none.
    let location = dialect
        .is_platform()
        .then(|| run_location(dialect, &thread, &run_id, "stream"));
    Ok(event_stream_response(dialect, location, events))
}

/// Returns the items of a join. If the events of a finished run are no longer stored, returns only
/// its end. `None` if an active run has no stream here.
pub(super) fn joined_items(
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

/// Returns status 200 and an error event, as the platform does for a run that does not exist.
fn follow_missing_run(state: &GatewayState, thread: &ThreadId, run: &RunId) -> Response {
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
        state.process.shutdown.clone(),
    );
    event_stream_response(
        dialect,
        Some(run_location(dialect, thread, run, "stream")),
        events,
    )
}
