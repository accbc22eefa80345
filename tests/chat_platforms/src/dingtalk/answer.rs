//! Answers of the REST API.

use std::collections::HashMap;

use axum::body::{Body, Bytes};
use axum::response::Response;
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, StatusCode};
use serde_json::{Value, json};

/// Answer of a call.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Value,
    pub(super) headers: HashMap<String, String>,
}

impl Answer {
    /// Creates a success.
    pub(super) fn ok(body: Value) -> Self {
        Self {
            status: 200,
            body,
            headers: HashMap::new(),
        }
    }

    /// Creates a refusal.
    pub(super) fn refused(status: u16, code: &str, message: &str) -> Self {
        Self {
            status,
            body: json!({"code": code, "message": message, "requestid": "R-1"}),
            headers: HashMap::new(),
        }
    }

    /// Creates the refusal of an invalid parameter.
    pub(super) fn invalid(parameter: &str) -> Self {
        Self::refused(
            400,
            &format!("invalidParameter.{parameter}"),
            &format!("{parameter} is invalid"),
        )
    }

    /// Creates the refusal of too many calls.
    pub(super) fn too_fast(retry_after: Option<f64>) -> Self {
        let mut answer = Self::refused(
            429,
            "Throttling.Api",
            "send too fast, exceed 20 times per minute",
        );
        if let Some(seconds) = retry_after {
            answer
                .headers
                .insert("retry-after".to_owned(), seconds.ceil().to_string());
        }
        answer
    }

    /// Returns the status of an error, or 0.
    pub(super) fn error(&self) -> i64 {
        match self.status {
            200..300 => 0,
            status => status.into(),
        }
    }

    /// Builds the response.
    pub(super) fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.body.to_string()));
        *response.status_mut() =
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in self.headers {
            if let (Ok(name), Ok(value)) =
                (HeaderName::try_from(name), HeaderValue::try_from(value))
            {
                headers.insert(name, value);
            }
        }
        response
    }
}

/// Builds a response whose connection ends before the body is complete.
pub(super) fn broken() -> Response {
    let parts = futures_util::stream::iter([
        Ok(Bytes::from_static(b"{")),
        Err(std::io::Error::other("scripted")),
    ]);
    Response::new(Body::from_stream(parts))
}
