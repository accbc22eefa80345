//! Decoding of requests, and answers.

use std::collections::HashMap;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, Multipart, Request};
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, StatusCode};
use serde_json::{Value, json};

/// Maximum size of a request in bytes.
pub(super) const MAX_BODY: usize = 64 * 1024 * 1024;

/// Answer of a call.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Value,
    pub(super) headers: HashMap<String, String>,
}

impl Answer {
    /// Creates an answer; null stands for an empty body.
    pub(super) fn new(status: u16, body: Value) -> Self {
        Self {
            status,
            body,
            headers: HashMap::new(),
        }
    }

    /// Creates a success.
    pub(super) fn ok(body: Value) -> Self {
        Self::new(200, body)
    }

    /// Creates a refusal with Discord's code.
    pub(super) fn refused(status: u16, code: i64, message: &str) -> Self {
        Self::new(status, json!({"message": message, "code": code}))
    }

    /// Creates the refusal of an invalid body.
    pub(super) fn invalid(field: &str, problem: &str) -> Self {
        Self::new(
            400,
            json!({
                "message": "Invalid Form Body", "code": 50035,
                "errors": {field: {"_errors": [{"code": "INVALID", "message": problem}]}},
            }),
        )
    }

    /// Returns the code of the error, or the status, or 0 for a success.
    pub(super) fn error(&self) -> i64 {
        if self.status < 400 {
            return 0;
        }
        self.body["code"]
            .as_i64()
            .unwrap_or_else(|| i64::from(self.status))
    }

    /// Builds the response.
    pub(super) fn into_response(self) -> Response {
        // Clients decode whatever claims to be JSON, also an empty body.
        let (kind, body) = if self.body.is_null() {
            ("text/html; charset=utf-8", Body::empty())
        } else {
            ("application/json", Body::from(self.body.to_string()))
        };
        let mut response = Response::new(body);
        *response.status_mut() =
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert("via", HeaderValue::from_static("1.1 google"));
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

/// Decodes the body of a request. Files are added under `_files`.
pub(super) async fn decode(request: Request) -> Result<Value, Answer> {
    let kind = request
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .to_owned();
    if kind.starts_with("multipart/form-data") {
        return multipart(request).await;
    }
    let bytes = axum::body::to_bytes(request.into_body(), MAX_BODY)
        .await
        .map_err(|_| Answer::invalid("body", "too large"))?;
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    if kind != "application/json" {
        return Err(Answer::refused(400, 50109, "Expected \"Content-Type\""));
    }
    serde_json::from_slice(&bytes)
        .map_err(|_| Answer::refused(400, 50109, "The request body contains invalid JSON."))
}

async fn multipart(request: Request) -> Result<Value, Answer> {
    let invalid = || Answer::invalid("body", "invalid multipart");
    let mut form = Multipart::from_request(request, &())
        .await
        .map_err(|_| invalid())?;
    let mut body = json!({});
    let mut files = Vec::new();
    while let Some(field) = form.next_field().await.map_err(|_| invalid())? {
        let name = field.name().unwrap_or_default().to_owned();
        let filename = field.file_name().map(ToOwned::to_owned);
        let bytes = field.bytes().await.map_err(|_| invalid())?;
        if name == "payload_json" {
            body = serde_json::from_slice(&bytes).map_err(|_| invalid())?;
        } else if name == format!("files[{}]", files.len()) {
            let filename = filename.ok_or_else(invalid)?;
            files.push(json!({
                "name": filename, "size": bytes.len(), "base64": STANDARD.encode(&bytes),
            }));
        } else {
            return Err(invalid());
        }
    }
    if !body.is_object() {
        return Err(invalid());
    }
    body["_files"] = json!(files);
    Ok(body)
}
