//! Refusals of the Bot API.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde_json::{Value, json};

/// Refusal with the code and words of the Bot API.
#[derive(Debug, Clone)]
pub(super) struct ApiFailure {
    pub(super) code: u16,
    pub(super) description: String,
    pub(super) parameters: Value,
}

impl ApiFailure {
    /// Creates a refusal with code 400.
    pub(super) fn bad(problem: impl std::fmt::Display) -> Self {
        Self::new(400, format!("Bad Request: {problem}"))
    }

    /// Creates a refusal with code 403.
    pub(super) fn forbidden(problem: &str) -> Self {
        Self::new(403, format!("Forbidden: {problem}"))
    }

    /// Creates a refusal with code 409.
    pub(super) fn conflict(problem: &str) -> Self {
        Self::new(409, format!("Conflict: {problem}"))
    }

    /// Creates the refusal of a call that exceeds a rate limit.
    pub(super) fn too_many(retry_after: u64) -> Self {
        Self {
            parameters: json!({"retry_after": retry_after}),
            ..Self::new(429, format!("Too Many Requests: retry after {retry_after}"))
        }
    }

    /// Creates the refusal of a call for a group that became a supergroup.
    pub(super) fn migrated(to: i64) -> Self {
        Self {
            parameters: json!({"migrate_to_chat_id": to}),
            ..Self::bad("group chat was upgraded to a supergroup chat")
        }
    }

    /// Creates a refusal without parameters.
    pub(super) fn new(code: u16, description: impl Into<String>) -> Self {
        Self {
            code,
            description: description.into(),
            parameters: Value::Null,
        }
    }
}

impl IntoResponse for ApiFailure {
    fn into_response(self) -> Response {
        let mut body = json!({
            "ok": false,
            "error_code": self.code,
            "description": self.description,
        });
        if !self.parameters.is_null() {
            body["parameters"] = self.parameters;
        }
        let status = StatusCode::from_u16(self.code).unwrap_or(StatusCode::BAD_REQUEST);
        (status, Json(body)).into_response()
    }
}
