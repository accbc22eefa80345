//! `GET /threads/{t}/stream`: the events of all runs of a thread, in sequence.

use std::io;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use harness::runtime::runs::{ThreadCursor, ThreadItem, ThreadStreams};
use serde_json::json;

use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{Ids, Query};
use crate::guard::session_stream::EndlessBody;
use crate::queries::threads::require_thread;
use crate::routes::{App, ResponseResult};
use crate::sse::{Frames, Style, event_stream_headers};

/// Maximum number of items per chunk.
const MAX_ITEMS_PER_CHUNK: usize = 64;

/// Supported modes. `state_update` is accepted but never sent.
const MODES: &[&str] = &["run_modes", "lifecycle", "state_update"];

pub(crate) async fn follow_thread(
    State(state): App,
    dialect: Dialect,
    ids: Ids,
    query: Query,
    headers: HeaderMap,
) -> ResponseResult {
    let thread = ids.thread()?;
    // The official clients send `stream_mode`, the official server reads `stream_modes`.
    let modes = [query.list("stream_modes"), query.list("stream_mode")].concat();
    if let Some(bad) = modes.iter().find(|mode| !MODES.contains(&mode.as_str())) {
        return Err(ApiError::Unprocessable(format!(
            "Invalid stream mode: {}",
            bad.chars().take(80).collect::<String>()
        )));
    }
    let whole = modes.is_empty() || modes.iter().any(|mode| mode == "run_modes");
    let cursor = match headers
        .get("last-event-id")
        .map(|value| value.to_str().unwrap_or("?"))
    {
        None | Some("") => ThreadCursor::Tail,
        Some(text) => text.parse().map_err(|_| {
            let text = "Invalid last-event-id: must be a valid Redis stream ID";
            ApiError::Unprocessable(text.to_owned())
        })?,
    };
    require_thread(&state, &thread).await?;
    let items = ThreadStreams::new(state.runs.runtime())
        .follow(&thread, cursor, dialect.heartbeat())
        .await?;
    let mut frames = Frames::new(Style { dialect, ids: true });
    let chunks = items
        .take_until(state.process.shutdown.clone().cancelled_owned())
        .ready_chunks(MAX_ITEMS_PER_CHUNK)
        .map(move |items| {
            for item in items {
                match item {
                    ThreadItem::Event(id, event) if whole || event.event == "metadata" => {
                        frames.named(&event.event, &event.data, id)
                    }
                    ThreadItem::Event(..) => {}
                    ThreadItem::RunDone(id, run) => {
                        let data =
                            Bytes::from(json!({ "status": "run_done", "run_id": run }).to_string());
                        frames.named("metadata", &data.into(), id);
                    }
                    ThreadItem::Heartbeat => frames.heartbeat(),
                }
            }
            std::iter::from_fn(|| frames.next_chunk())
                .map(Ok)
                .collect::<Vec<_>>()
        });
    // The stream has no end: a broken connection makes the client reconnect.
    let cut = stream::once(async {
        Err(io::Error::other(
            "the stream was interrupted; reconnect with Last-Event-ID",
        ))
    });
    let body = chunks.flat_map(stream::iter).chain(cut);
    let body = axum::body::Body::from_stream(body);
    let mut response = (event_stream_headers(dialect), body).into_response();
    response.extensions_mut().insert(EndlessBody);
    Ok(response)
}
