//! Answers of the Web API.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::{Value, json};

/// Result of a method: the fields of a success, or a failure.
pub(super) type Outcome = Result<Value, Failure>;

/// Failure of a method.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Failure {
    /// Code in the field `error`.
    pub(super) code: String,
    /// More fields of the answer.
    pub(super) more: Value,
    /// Delay of a rate limit; the status is 429 then.
    pub(super) retry_after: Option<Duration>,
}

impl Failure {
    /// Returns a failure without more fields.
    pub(super) fn new(code: &str) -> Self {
        Self {
            code: code.to_owned(),
            more: json!({}),
            retry_after: None,
        }
    }

    /// Returns the failure of a missing or invalid parameter.
    pub(super) fn argument(name: &str) -> Self {
        Self {
            more: json!({"response_metadata": {"messages": [format!("[ERROR] {name}")]}}),
            ..Self::new("invalid_arguments")
        }
    }

    /// Returns the failure of a rate limit.
    pub(super) fn limited(delay: Duration) -> Self {
        Self {
            retry_after: Some(delay),
            ..Self::new("ratelimited")
        }
    }
}

/// Builds the answer of an outcome.
pub(super) fn respond(outcome: Outcome, scopes: &str) -> Response {
    let (status, mut body, delay) = match outcome {
        Ok(mut body) => {
            body["ok"] = json!(true);
            (StatusCode::OK, body, None)
        }
        Err(failure) => {
            let mut body = failure.more;
            body["ok"] = json!(false);
            body["error"] = json!(failure.code);
            let status = match failure.retry_after {
                Some(_) => StatusCode::TOO_MANY_REQUESTS,
                None => StatusCode::OK,
            };
            (status, body, failure.retry_after)
        }
    };
    if !body.is_object() {
        body = json!({"ok": true});
    }
    let mut response = json_response(status, &body);
    let headers = response.headers_mut();
    if let Some(delay) = delay {
        let seconds = delay.as_secs_f64().ceil().max(1.0) as u64;
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if let Ok(scopes) = HeaderValue::from_str(scopes) {
        headers.insert(HeaderName::from_static("x-oauth-scopes"), scopes);
    }
    response
}

/// Builds an answer of JSON.
pub(super) fn json_response(status: StatusCode, body: &Value) -> Response {
    let kind = (header::CONTENT_TYPE, "application/json; charset=utf-8");
    (status, [kind], body.to_string()).into_response()
}

/// Builds an answer that breaks off.
pub(super) fn broken() -> Response {
    let broken = std::io::Error::other("scripted fault");
    let stream = futures_util::stream::iter([Err::<Bytes, _>(broken)]);
    Response::new(Body::from_stream(stream))
}
