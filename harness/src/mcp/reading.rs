//! What a server says, as far as it can be read: an odd part costs neither the rest nor the time until somebody gives up.

use rmcp::model::{ContentBlock, CustomResult, ErrorData, RequestId, ServerJsonRpcMessage, ServerResult, Tool};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// What stands for a part of a kind that is not known here.
pub(super) const UNKNOWN: &str = "[a part of a kind that is not known here]";

/// The message in some bytes. A reply that breaks the rules of the envelope is one: somebody waits for it.
pub(super) fn message(bytes: &[u8]) -> Result<ServerJsonRpcMessage, serde_json::Error> {
    serde_json::from_slice(bytes).or_else(|error| odd_reply(bytes).ok_or(error))
}

fn odd_reply(bytes: &[u8]) -> Option<ServerJsonRpcMessage> {
    let mut reply: Map<String, Value> = serde_json::from_slice(bytes).ok()?;
    if reply.contains_key("method") {
        return None;
    }
    let id = RequestId::deserialize(reply.remove("id")?).ok()?;
    let error = reply.remove("error").filter(|error| !error.is_null());
    if let (None, Some(result)) = (&error, reply.remove("result")) {
        return Some(ServerJsonRpcMessage::response(ServerResult::deserialize(result).ok()?, id));
    }
    let error = error.unwrap_or_else(|| "it answered with neither a result nor an error".into());
    let words = match error.get("message").unwrap_or(&error) {
        Value::String(words) => words.clone(),
        other => other.to_string(),
    };
    Some(ServerJsonRpcMessage::error(ErrorData::internal_error(words, None), Some(id)))
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
        tracing::warn!(tools = before - tools.len(), "tools of an mcp server are left out, since they are not described as tools are");
    }
    ServerResult::deserialize(&odd).unwrap_or(ServerResult::CustomResult(CustomResult(odd)))
}

fn is<T: DeserializeOwned>(value: &Value) -> bool {
    T::deserialize(value).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> ServerJsonRpcMessage {
        without_odd_parts(message(text.as_bytes()).unwrap())
    }

    fn refusal(text: &str) -> String {
        read(text).into_error().unwrap().0.message.into_owned()
    }

    #[test]
    fn a_reply_that_breaks_the_rules_of_the_envelope_is_one() {
        assert_eq!(refusal(r#"{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"no"}}"#), "no");
        assert_eq!(refusal(r#"{"jsonrpc":"2.0","id":7,"error":{"code":"x","message":"no"}}"#), "no");
        assert_eq!(refusal(r#"{"id":7,"error":"no"}"#), "no");
        assert_eq!(refusal(r#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":5}}"#), "5");
        assert_eq!(refusal(r#"{"jsonrpc":"2.0","id":7,"result":null,"error":{"code":1,"message":"no"}}"#), "no");
        assert_eq!(refusal(r#"{"jsonrpc":"2.0","id":7}"#), "it answered with neither a result nor an error");
        for result in [r#"{"jsonrpc":"2.0","id":7,"result":{"tools":[]},"error":null}"#, r#"{"id":7,"result":{"tools":[]}}"#] {
            let (result, id) = read(result).into_response().unwrap();
            assert!(matches!(result, ServerResult::ListToolsResult(_)) && id == RequestId::Number(7), "{result:?}");
        }
        for none in ["", "nonsense", "[]", "7", r#"{"error":"no"}"#, r#"{"id":{},"error":"no"}"#, r#"{"id":7,"method":5}"#] {
            assert!(message(none.as_bytes()).is_err(), "{none}");
        }
    }

    #[test]
    fn an_odd_part_costs_not_the_others() {
        let result = |result: Value| {
            let reply = json!({"jsonrpc": "2.0", "id": 7, "result": result});
            read(&reply.to_string()).into_response().unwrap().0
        };
        let ServerResult::CallToolResult(found) = result(json!({"content": [
            {"type": "text", "text": "before"},
            {"type": "hologram", "data": "x"},
            {"type": "image"},
            5,
            {"type": "text", "text": "after"},
        ], "isError": true})) else {
            panic!("no result of a call")
        };
        let texts: Vec<_> = found.content.iter().map(|block| block.as_text().unwrap().text.as_str()).collect();
        assert_eq!((texts, found.is_error), (vec!["before", UNKNOWN, UNKNOWN, UNKNOWN, "after"], Some(true)));
        let good = json!({"name": "good", "inputSchema": {"type": "object"}});
        let ServerResult::ListToolsResult(found) = result(json!({"tools": [{"name": "bad"}, good, 5], "nextCursor": "more"})) else {
            panic!("no list")
        };
        assert_eq!((found.tools.len(), found.next_cursor.as_deref()), (1, Some("more")));
        assert!(matches!(result(json!({"content": "no list"})), ServerResult::CustomResult(_)));
    }
}
