//! Runs as HTTP bodies: event streams, and JSON responses that wait for a run's end.

mod body;
mod frame;
mod guard;
mod opening;
mod wait;

pub use body::{EventFilter, EventStream};
pub use frame::{Frames, Style};
pub use guard::DisconnectGuard;
pub use wait::{ended_json, waiting_json};

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use harness::ids::{RunId, ThreadId};

use crate::dialect::Dialect;
use crate::error::ApiError;

/// Returns `Content-Location` and `Location` of a run. The first must end with the run's id,
/// because clients read to its end.
pub fn run_location(
    dialect: Dialect,
    thread: &ThreadId,
    run: &RunId,
    follow: &str,
) -> [(HeaderName, HeaderValue); 2] {
    let path = format!("/threads/{thread}/runs/{run}");
    // The characters of ids are restricted, so both values are valid.
    let value = |text: String| {
        HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static("/"))
    };
    [
        (
            header::CONTENT_LOCATION,
            value(format!("{}{path}", dialect.content_prefix())),
        ),
        (header::LOCATION, value(format!("{path}/{follow}"))),
    ]
}

/// Returns headers of an event stream that keep proxies from buffering it.
pub fn event_stream_headers(dialect: Dialect) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream; charset=utf-8"),
    );
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static(dialect.cache_control()),
    );
    headers.insert(header::CONNECTION, HeaderValue::from_static("keep-alive"));
    headers.insert(
        HeaderName::from_static("x-accel-buffering"),
        HeaderValue::from_static("no"),
    );
    headers
}

/// Returns the response of an event stream.
#[tracing::instrument(name = "respond", skip_all)]
pub fn event_stream_response(
    dialect: Dialect,
    location: Option<[(HeaderName, HeaderValue); 2]>,
    events: EventStream,
) -> Response {
    let mut headers = event_stream_headers(dialect);
    headers.extend(location.into_iter().flatten());
    (headers, Body::from_stream(events)).into_response()
}

/// Returns the cursor of a request, from its `Last-Event-ID` header.
pub fn last_event_id(
    headers: &HeaderMap,
) -> Result<Option<harness::runtime::stream_bridge::ResumeFrom>, ApiError> {
    let Some(value) = headers.get("last-event-id") else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or("?");
    if text.trim().is_empty() {
        return Ok(None);
    }
    harness::runtime::stream_bridge::ResumeFrom::parse(text)
        .map(Some)
        .map_err(|error| ApiError::Unprocessable(format!("Last-Event-ID: {error}")))
}
