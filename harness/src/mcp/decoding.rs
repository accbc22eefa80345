//! Decodes server messages tolerantly: a malformed part does not invalidate the rest of a message,
//! and a malformed reply fails its request at once instead of at the timeout.

use rmcp::model::{
    ContentBlock, CustomResult, ErrorData, RequestId, ServerJsonRpcMessage, ServerResult, Tool,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::messages::json_repair::repaired;

/// Replacement text for a content part of an unknown kind.
pub(super) const UNKNOWN_PART: &str = "[a part of a kind that is not known here]";

/// Decodes one message. Invalid UTF-8 is replaced character by character, and a reply with a
/// malformed envelope is still delivered, because a request waits for it.
pub(super) fn message(bytes: &[u8]) -> Result<ServerJsonRpcMessage, serde_json::Error> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    serde_json::from_str(text).or_else(|error| {
        let text = repaired(text);
        serde_json::from_str(&text)
            .ok()
            .or_else(|| malformed_reply(&text))
            .ok_or(error)
    })
}

fn malformed_reply(text: &str) -> Option<ServerJsonRpcMessage> {
    let mut reply: Map<String, Value> = serde_json::from_str(text).ok()?;
    if reply.contains_key("method") {
        return None;
    }
    let id = RequestId::deserialize(reply.remove("id")?).ok()?;
    let error = reply.remove("error").filter(|error| !error.is_null());
    if let (None, Some(result)) = (&error, reply.remove("result")) {
        return Some(ServerJsonRpcMessage::response(
            ServerResult::deserialize(result).ok()?,
            id,
        ));
    }
    let error = error.unwrap_or_else(|| "it answered with neither a result nor an error".into());
    let message_text = match error.get("message").unwrap_or(&error) {
        Value::String(message_text) => message_text.clone(),
        other => other.to_string(),
    };
    Some(ServerJsonRpcMessage::error(
        ErrorData::internal_error(message_text, None),
        Some(id),
    ))
}

/// Replaces the unreadable parts of a result and keeps the readable ones.
pub(super) fn replace_unreadable_parts(message: ServerJsonRpcMessage) -> ServerJsonRpcMessage {
    match message {
        ServerJsonRpcMessage::Response(mut reply) => {
            reply.result = match reply.result {
                ServerResult::CustomResult(malformed) => with_readable_parts(malformed.0),
                known => known,
            };
            ServerJsonRpcMessage::Response(reply)
        }
        other => other,
    }
}

fn with_readable_parts(mut malformed: Value) -> ServerResult {
    if let Some(Value::Array(blocks)) = malformed.get_mut("content") {
        for block in blocks
            .iter_mut()
            .filter(|block| !is_valid::<ContentBlock>(block))
        {
            *block = json!({ "type": "text", "text": UNKNOWN_PART });
        }
    }
    if let Some(Value::Array(tools)) = malformed.get_mut("tools") {
        let before = tools.len();
        tools.retain(is_valid::<Tool>);
        let skipped = before - tools.len();
        if skipped > 0 {
            tracing::warn!(
                skipped,
                "skipping tools of an mcp server whose descriptions are malformed"
            );
        }
    }
    ServerResult::deserialize(&malformed)
        .unwrap_or(ServerResult::CustomResult(CustomResult(malformed)))
}

fn is_valid<T: DeserializeOwned>(value: &Value) -> bool {
    T::deserialize(value).is_ok()
}

#[cfg(test)]
#[path = "decoding_tests.rs"]
mod tests;
