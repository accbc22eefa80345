//! What a server says, as far as it can be read: an odd part costs neither the rest nor the time until somebody gives up.

use rmcp::model::{
    ContentBlock, CustomResult, ErrorData, RequestId, ServerJsonRpcMessage, ServerResult, Tool,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::messages::json_repair::repaired;

/// What stands for a part of a kind that is not known here.
pub(super) const UNKNOWN: &str = "[a part of a kind that is not known here]";

/// The message in some bytes. Letters that are none cost themselves alone, and a reply that breaks the rules of the envelope is one:
/// somebody waits for it.
pub(super) fn message(bytes: &[u8]) -> Result<ServerJsonRpcMessage, serde_json::Error> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    serde_json::from_str(text).or_else(|error| {
        let text = repaired(text);
        serde_json::from_str(&text)
            .ok()
            .or_else(|| odd_reply(&text))
            .ok_or(error)
    })
}

fn odd_reply(text: &str) -> Option<ServerJsonRpcMessage> {
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
    let words = match error.get("message").unwrap_or(&error) {
        Value::String(words) => words.clone(),
        other => other.to_string(),
    };
    Some(ServerJsonRpcMessage::error(
        ErrorData::internal_error(words, None),
        Some(id),
    ))
}

/// The message, where it is a result of which parts cannot be read: with the others.
pub(super) fn without_odd_parts(message: ServerJsonRpcMessage) -> ServerJsonRpcMessage {
    match message {
        ServerJsonRpcMessage::Response(mut reply) => {
            reply.result = match reply.result {
                ServerResult::CustomResult(odd) => result(odd.0),
                known => known,
            };
            ServerJsonRpcMessage::Response(reply)
        }
        other => other,
    }
}

fn result(mut odd: Value) -> ServerResult {
    if let Some(Value::Array(blocks)) = odd.get_mut("content") {
        for block in blocks.iter_mut().filter(|block| !is::<ContentBlock>(block)) {
            *block = json!({ "type": "text", "text": UNKNOWN });
        }
    }
    if let Some(Value::Array(tools)) = odd.get_mut("tools") {
        let before = tools.len();
        tools.retain(is::<Tool>);
        let left_out = before - tools.len();
        if left_out > 0 {
            tracing::warn!(
                left_out,
                "tools of an mcp server are left out, since they are not described as tools are"
            );
        }
    }
    ServerResult::deserialize(&odd).unwrap_or(ServerResult::CustomResult(CustomResult(odd)))
}

fn is<T: DeserializeOwned>(value: &Value) -> bool {
    T::deserialize(value).is_ok()
}

#[cfg(test)]
#[path = "reading_tests.rs"]
mod tests;
