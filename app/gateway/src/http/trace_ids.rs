//! Trace ids of requests, by which operators find the log lines of a response.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use harness::ids::IdSource;
use tracing::Instrument;

/// Header with the trace id, of requests and responses.
pub(crate) const TRACE_ID: HeaderName = HeaderName::from_static("x-trace-id");
/// Maximum length of a client's trace id.
const MAX_LENGTH: usize = 128;

/// Adds the trace id to the log lines of a request, including those of a run that it creates, and to
/// its response. A valid id of the client is used, otherwise a new one.
pub(crate) async fn add_trace_id(
    State(ids): State<Arc<dyn IdSource>>,
    request: Request,
    next: Next,
) -> Response {
    let id = match of_client(request.headers()) {
        Some(id) => id,
        None => ids.random().simple().to_string(),
    };
    let span = tracing::info_span!("request", trace_id = %id);
    let mut response = next.run(request).instrument(span).await;
    // The characters of ids are restricted, so the value is valid.
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(TRACE_ID, value);
    }
    response
}

/// Returns the client's trace id, if it is harmless in log lines.
fn of_client(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(TRACE_ID)?.to_str().ok()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    let is_valid = !id.is_empty() && id.len() <= MAX_LENGTH && id.chars().all(is_plain);
    is_valid.then(|| id.to_owned())
}
