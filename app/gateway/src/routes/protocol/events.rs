//! `POST /threads/{t}/stream/events`: the events of a thread as an event stream without an end.

use std::io;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::IntoResponse;
use bytes::Bytes;
use futures_util::stream;
use serde_json::Value;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::open_log;
use crate::dialect::Dialect;
use crate::error::ApiError;
use crate::extract::{AnyJson, Ids};
use crate::guard::session_stream::EndlessBody;
use crate::observability::metrics::OpenStream;
use crate::routes::{App, ResponseResult};
use crate::sse::{Frames, Style, event_stream_headers};
use crate::thread_log::{EventSelection, LogReader};

/// Maximum number of bytes that are read at once.
const CHUNK_LIMIT: usize = 64 * 1024;

pub(crate) async fn events(
    State(state): App,
    dialect: Dialect,
    ids: Ids,
    AnyJson(body): AnyJson,
) -> ResponseResult {
    let thread = ids.thread()?;
    let refused = || "channels must be given in an object".to_owned();
    let selection = match &body {
        Value::Object(fields) => EventSelection::read(fields),
        _ => Err(refused()),
    };
    let selection = selection.map_err(ApiError::BadRequest)?;
    let reader = open_log(&state, &thread, selection.since.unwrap_or_default()).await?;
    let body = EventBody {
        reader,
        selection,
        frames: Frames::new(Style { dialect, ids: true }),
        beat_at: Instant::now() + Dialect::Platform.heartbeat(),
        shutdown: state.process.shutdown.clone(),
        _open: OpenStream::new(),
    };
    let chunks = stream::unfold(Some(body), |body| async { body?.next().await });
    let mut headers = event_stream_headers(dialect);
    if dialect.is_platform() {
        // The clients of this protocol compare the value.
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    let mut response = (headers, Body::from_stream(chunks)).into_response();
    response.extensions_mut().insert(EndlessBody);
    Ok(response)
}

/// Body of the stream. It breaks when the server stops or the client is too slow, so that the
/// client reconnects.
struct EventBody {
    reader: LogReader,
    selection: EventSelection,
    frames: Frames,
    beat_at: Instant,
    shutdown: CancellationToken,
    _open: OpenStream,
}

impl EventBody {
    async fn next(mut self) -> Option<(io::Result<Bytes>, Option<Self>)> {
        loop {
            if let Some(chunk) = self.frames.next_chunk() {
                self.beat_at = Instant::now() + Dialect::Platform.heartbeat();
                return Some((Ok(chunk), Some(self)));
            }
            let is_open = tokio::select! {
                is_open = self.reader.changed() => is_open,
                () = sleep_until(self.beat_at) => {
                    self.frames.heartbeat();
                    continue;
                }
                () = self.shutdown.cancelled() => false,
            };
            let events = match self.reader.read(CHUNK_LIMIT) {
                Ok(events) => events,
                Err(lagging) => return Some((Err(io::Error::other(lagging)), None)),
            };
            for event in events.iter().filter(|event| self.selection.contains(event)) {
                self.frames.logged(event.method(), &event.json, event.seq);
            }
            if !is_open && events.is_empty() {
                let error = io::Error::other("the stream was interrupted; reconnect");
                return Some((Err(error), None));
            }
        }
    }
}
