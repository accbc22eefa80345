//! Answers of the streaming protocol.

use serde_json::Value;
use utoipa::ToSchema;

/// Answer to a command: a result, or an error.
#[derive(Debug, ToSchema)]
pub struct ProtocolAnswer {
    /// `success` or `error`.
    pub r#type: String,
    /// Id of the command; null if it has none.
    pub id: Value,
    /// Result of the command.
    #[schema(value_type = Object, required = false, nullable = false)]
    pub result: Option<Value>,
    /// Facts of the connection: `applied_through_seq` is the position of the last event that it
    /// has sent.
    #[schema(value_type = Object, required = false, nullable = false)]
    pub meta: Option<Value>,
    /// Code of the error.
    #[schema(nullable = false)]
    pub error: Option<String>,
    /// Human-readable description of the error.
    #[schema(nullable = false)]
    pub message: Option<String>,
}

/// Error of a command that is malformed: an answer, or the standard error of a body without JSON.
#[derive(Debug, ToSchema)]
#[schema(value_type = Object)]
pub struct ProtocolRefusal(pub Value);
