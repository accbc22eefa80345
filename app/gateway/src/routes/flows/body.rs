//! Bodies with a flow: its text alone, or a JSON object that wraps it.

use std::sync::Arc;

use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use deerflow_domain::flows::MAX_TEXT_BYTES;
use deerflow_flow::finding::{Finding, FindingCode};
use serde_json::Value;

use super::errors::invalid;
use crate::error::ApiError;
use crate::extract::{check_parsed_size, receive};
use crate::guard::body_memory::RequestMemory;
use crate::state::GatewayState;

/// Maximum size of a body with a flow: JSON writes a character with up to six bytes.
const MAX_BODY_BYTES: usize = 6 * MAX_TEXT_BYTES + 4096;
/// Media types of a flow. A body without a media type is text, too.
const TEXT_TYPES: [&str; 8] = [
    "application/json",
    "application/yaml",
    "application/x-yaml",
    "application/vnd.yaml",
    "text/yaml",
    "text/x-yaml",
    "text/plain",
    "application/octet-stream",
];

/// Text of a flow that a client sent.
#[derive(Debug)]
pub(crate) struct FlowText {
    /// The text as it was sent.
    pub(super) text: String,
    /// `id` of a wrapped flow.
    pub(super) id: Option<String>,
}

impl FromRequest<Arc<GatewayState>> for FlowText {
    type Rejection = ApiError;

    async fn from_request(request: Request, _state: &Arc<GatewayState>) -> Result<Self, ApiError> {
        let kind = media_type(request.headers());
        if !kind.is_empty() && !TEXT_TYPES.contains(&kind.as_str()) {
            return Err(ApiError::UnsupportedFile(format!(
                "A flow is sent as application/json or application/yaml, not as {kind}"
            )));
        }
        let memory = request.extensions().get::<RequestMemory>().cloned();
        let bytes = receive(request, MAX_BODY_BYTES).await?;
        let text = String::from_utf8(bytes.into()).map_err(|error| not_utf_8(error.as_bytes()))?;
        let flow = match kind.as_str() {
            "application/json" => {
                let size = check_parsed_size(text.as_bytes())?;
                if let Some(memory) = memory {
                    memory.reserve_values(size).await?;
                }
                unwrapped(text)
            }
            _ => Self { text, id: None },
        };
        if flow.text.len() > MAX_TEXT_BYTES {
            return Err(ApiError::TooLarge(MAX_TEXT_BYTES as u64));
        }
        Ok(flow)
    }
}

/// Returns the error of a body that is not text, with the line of the first wrong byte.
fn not_utf_8(bytes: &[u8]) -> ApiError {
    let valid = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let message = format!(
        "the document: byte {} is not UTF-8; expected YAML or JSON as UTF-8 text",
        valid.len()
    );
    let mut finding = Finding::new(FindingCode::SchemaInvalid, message).at("");
    finding.line = Some(1 + valid.matches('\n').count() as u64);
    invalid(&[finding])
}

/// Returns the flow of a wrapper `{"content": "..."}` or `{"flow": {...}}`, each with an optional
/// `id`; any other text is the flow itself.
fn unwrapped(text: String) -> FlowText {
    let Ok(Value::Object(fields)) = serde_json::from_str(&text) else {
        return FlowText { text, id: None };
    };
    let inner = match (fields.get("content"), fields.get("flow")) {
        _ if fields.contains_key("graph") => None,
        (Some(Value::String(content)), _) => Some(content.clone()),
        (None, Some(flow @ Value::Object(_))) => Some(flow.to_string()),
        _ => None,
    };
    let id = fields.get("id").and_then(Value::as_str).map(str::to_owned);
    match inner {
        Some(text) => FlowText { text, id },
        None => FlowText { text, id: None },
    }
}

/// Returns the media type of a body without its parameters; empty if there is none.
pub(super) fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(header::CONTENT_TYPE);
    let text = value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let kind = text.split(';').next().unwrap_or_default();
    kind.trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_flow_is_unwrapped_and_other_json_is_unchanged() {
        let read = |text: &str| {
            let flow = unwrapped(text.to_owned());
            (flow.text, flow.id)
        };
        let text = |text: &str| (text.to_owned(), None);
        assert_eq!(
            read(r#"{"content": "a: b", "id": "f"}"#),
            ("a: b".to_owned(), Some("f".to_owned()))
        );
        assert_eq!(read(r#"{"flow": {"a": 1}}"#), text(r#"{"a":1}"#));
        for other in [
            r#"{"graph": {}, "content": "x"}"#,
            r#"{ "a": 1 }"#,
            "[1]",
            "{",
            "",
        ] {
            assert_eq!(read(other), text(other));
        }
    }
}
