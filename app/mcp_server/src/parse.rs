//! Parses a line of a client: a message, a line that gets no response, or an invalid request.

use rmcp::model::{ClientJsonRpcMessage, ErrorData, RequestId};
use serde_json::Value;

/// Maximum length of a line in bytes, without the line feed.
pub(crate) const MAX_LINE_BYTES: usize = 8 << 20;

/// Error response to an invalid line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Refusal {
    /// Error.
    pub(crate) error: ErrorData,
    /// Id of the request, if it could be read.
    pub(crate) id: Option<RequestId>,
}

/// Parses a line. Returns `Ok(None)` for empty lines and unknown notifications, which get no
/// response.
pub(crate) fn read(line: &[u8]) -> Result<Option<ClientJsonRpcMessage>, Box<Refusal>> {
    let line = line
        .strip_prefix("\u{feff}".as_bytes())
        .unwrap_or(line)
        .trim_ascii();
    if line.is_empty() {
        return Ok(None);
    }
    match serde_json::from_slice(line) {
        Ok(message) => Ok(Some(message)),
        Err(_) => refusal(line).map_or(Ok(None), |refusal| Err(Box::new(refusal))),
    }
}

/// Returns the error response to a line above the length limit.
pub(crate) fn too_long() -> Box<Refusal> {
    let error = ErrorData::invalid_request(
        format!("a message has {} MiB at most", MAX_LINE_BYTES >> 20),
        None,
    );
    Box::new(Refusal { error, id: None })
}

/// Returns the error response to a line that is not a message, or `None` if it expects no response.
fn refusal(line: &[u8]) -> Option<Refusal> {
    let value: Value = match serde_json::from_slice(line) {
        Ok(value) => value,
        Err(error) => {
            return Some(Refusal {
                error: ErrorData::parse_error(format!("this is not JSON: {error}"), None),
                id: None,
            });
        }
    };
    let invalid = |problem: &'static str, id| {
        Some(Refusal {
            error: ErrorData::invalid_request(problem, None),
            id,
        })
    };
    let Some(fields) = value.as_object() else {
        return invalid(
            if value.is_array() {
                "send one message in a line, not a list"
            } else {
                "a message is an object"
            },
            None,
        );
    };
    let id = fields
        .get("id")
        .and_then(|id| serde_json::from_value(id.clone()).ok());
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return invalid("a message says \"jsonrpc\": \"2.0\"", id);
    }
    match (
        fields.get("method").map(Value::is_string),
        fields.contains_key("id"),
    ) {
        (Some(true), false) => None,
        (Some(true), true) if id.is_none() => {
            invalid("the id of a request is a string or a whole number", None)
        }
        (Some(true), true) => invalid("the parameters of a request are an object", id),
        (Some(false), _) => invalid("the method of a request is a string", id),
        (None, _) => invalid(
            "a message has a method, or a result or an error with an id",
            id,
        ),
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::ErrorCode;
    use serde_json::json;

    use super::*;

    fn refused(line: &str) -> (ErrorCode, Option<RequestId>) {
        match read(line.as_bytes()) {
            Err(refusal) => (refusal.error.code, refusal.id),
            other => panic!("{line} is not refused: {other:?}"),
        }
    }

    #[test]
    fn whitespace_and_bom_around_request_are_ignored() {
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"no/such\"} \r",
        ] {
            assert!(
                matches!(
                    read(line.as_bytes()),
                    Ok(Some(ClientJsonRpcMessage::Request(_)))
                ),
                "{line}"
            );
        }
    }

    #[test]
    fn invalid_message_is_rejected_with_id_if_known() {
        let deep = "[".repeat(100_000);
        for line in ["{", "\u{1}", "{\"a\":1}x", "{\"jsonrpc\":\"2.0\"", &deep] {
            assert_eq!(refused(line), (ErrorCode::PARSE_ERROR, None), "{line:.80}");
        }
        assert!(
            matches!(read(b"\xff\xfe"), Err(refusal) if refusal.error.code == ErrorCode::PARSE_ERROR)
        );
        let seven = Some(RequestId::Number(7));
        for (line, id) in [
            (json!([{"jsonrpc": "2.0", "id": 7, "method": "ping"}]), None),
            (json!("ping"), None),
            (json!({"id": 7, "method": "ping"}), seven.clone()),
            (
                json!({"jsonrpc": "2.0", "id": 7, "method": 5}),
                seven.clone(),
            ),
            (json!({"jsonrpc": "2.0", "id": 7}), seven.clone()),
            (json!({"jsonrpc": "2.0", "id": {}, "method": "ping"}), None),
            (json!({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}), None),
            (
                json!({"jsonrpc": "2.0", "id": 7, "method": "ping", "result": {}}),
                seven,
            ),
        ] {
            assert_eq!(
                refused(&line.to_string()),
                (ErrorCode::INVALID_REQUEST, id),
                "{line}"
            );
        }
    }

    #[test]
    fn notifications_get_no_response() {
        for line in [
            "",
            "  \r",
            r#"{"jsonrpc":"2.0","method":"$/unknown","params":3}"#,
        ] {
            assert!(
                !matches!(
                    read(line.as_bytes()),
                    Err(_) | Ok(Some(ClientJsonRpcMessage::Request(_)))
                ),
                "{line}"
            );
        }
    }
}
