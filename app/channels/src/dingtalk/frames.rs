//! Frames of stream mode.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::platform::{MAX_NESTING, nesting};

/// Topic of messages.
pub(super) const TOPIC: &str = "/v1.0/im/bot/messages/get";

/// Received frame.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Frame {
    /// Message. Its acknowledgement follows when it is stored.
    Message {
        /// Id of the frame.
        id: String,
        /// Data; null if it is malformed.
        data: Value,
    },
    /// Frame that is acknowledged at once.
    Plain {
        /// Acknowledgement.
        answer: String,
        /// `true` if the platform will close the connection.
        ends: bool,
    },
}

/// Part of a frame that an acknowledgement needs. The rest is skipped without recursion.
#[derive(Debug, Deserialize)]
struct Outer {
    headers: OuterHeaders,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OuterHeaders {
    message_id: String,
}

/// Decodes a frame.
///
/// # Errors
/// Words for the log if it cannot even be acknowledged.
pub(super) fn decode(text: &str) -> Result<Frame, &'static str> {
    if nesting(text.as_bytes()) > MAX_NESTING {
        let outer: Outer = serde_json::from_str(text).map_err(|_| "a deep frame without id")?;
        tracing::warn!("dingtalk sent a frame that is nested too deeply");
        return Ok(Frame::Plain {
            answer: answer(&outer.headers.message_id, STORED),
            ends: false,
        });
    }
    let frame: Value = serde_json::from_str(text).map_err(|_| "not JSON")?;
    let headers = &frame["headers"];
    let id = headers["messageId"].as_str().ok_or("a frame without id")?;
    let topic = headers["topic"].as_str().unwrap_or_default();
    let data = frame["data"].as_str().unwrap_or_default();
    let plain = |data: &str, ends: bool| Frame::Plain {
        answer: answer(id, data),
        ends,
    };
    Ok(match (frame["type"].as_str().unwrap_or_default(), topic) {
        ("CALLBACK", TOPIC) => Frame::Message {
            id: id.to_owned(),
            data: parse(data).unwrap_or_default(),
        },
        ("SYSTEM", "disconnect") => plain(data, true),
        ("SYSTEM", _) => plain(data, false),
        ("EVENT", _) => plain(r#"{"status":"SUCCESS","message":"OK"}"#, false),
        (kind, topic) => {
            tracing::warn!(kind, topic, "dingtalk sent a frame of an unknown kind");
            plain(STORED, false)
        }
    })
}

/// Data of the acknowledgement of a message.
const STORED: &str = r#"{"response":"OK"}"#;

/// Builds the acknowledgement of a message.
pub(super) fn stored(id: &str) -> String {
    answer(id, STORED)
}

fn answer(id: &str, data: &str) -> String {
    json!({
        "code": 200,
        "headers": {"contentType": "application/json", "messageId": id},
        "message": "OK",
        "data": data,
    })
    .to_string()
}

/// Parses data of a limited nesting.
fn parse(text: &str) -> Option<Value> {
    if nesting(text.as_bytes()) > MAX_NESTING {
        return None;
    }
    serde_json::from_str(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn recorded_system_frames_are_echoed() {
        let ping = r#"{"specVersion": "1.0", "type": "SYSTEM", "headers": {"topic": "ping", "messageId": "p-1", "contentType": "application/json", "time": "1763870000000"}, "data": "{\"opaque\":\"0d96\"}"}"#;
        let Ok(Frame::Plain { answer, ends }) = decode(ping) else {
            panic!("a plain frame");
        };
        let expected = json!({
            "code": 200, "headers": {"contentType": "application/json", "messageId": "p-1"},
            "message": "OK", "data": "{\"opaque\":\"0d96\"}",
        });
        assert_eq!((parsed(&answer), ends), (expected, false));
        let disconnect = ping.replace("\"ping\"", "\"disconnect\"");
        assert!(matches!(
            decode(&disconnect),
            Ok(Frame::Plain { ends: true, .. })
        ));
    }

    #[test]
    fn messages_carry_their_data() {
        let frame = json!({
            "type": "CALLBACK", "headers": {"topic": TOPIC, "messageId": "mid-1"},
            "data": "{\"msgId\":\"m\"}",
        });
        assert_eq!(
            decode(&frame.to_string()),
            Ok(Frame::Message {
                id: "mid-1".to_owned(),
                data: json!({"msgId": "m"}),
            })
        );
        assert_eq!(parsed(&stored("mid-1"))["data"], "{\"response\":\"OK\"}");
    }

    #[test]
    fn hostile_frames_are_refused_or_empty() {
        for text in ["", "{", "7", "[]", "{}", r#"{"headers":{"messageId":7}}"#] {
            assert!(decode(text).is_err(), "{text}");
        }
        let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
        let frame = json!({
            "type": "CALLBACK", "headers": {"topic": TOPIC, "messageId": "m"}, "data": deep,
        });
        assert!(matches!(
            decode(&frame.to_string()),
            Ok(Frame::Message {
                data: Value::Null,
                ..
            })
        ));
        assert!(decode(&deep).is_err());
        for levels in [70, 100_000] {
            let deep = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
            let frame = format!(
                r#"{{"type":"CALLBACK","headers":{{"messageId":"m","x":{deep}}},"data":{deep}}}"#
            );
            let Ok(Frame::Plain { answer, ends }) = decode(&frame) else {
                panic!("{levels} levels are not acknowledged");
            };
            assert_eq!(parsed(&answer)["headers"]["messageId"], "m");
            assert!(!ends);
        }
        let unknown = r#"{"type":"NEW","headers":{"messageId":"m"},"data":{}}"#;
        assert!(matches!(decode(unknown), Ok(Frame::Plain { .. })));
    }
}
