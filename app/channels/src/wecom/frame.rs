//! Frames of the long connection.

use serde_json::{Value, json};

use crate::platform::{MAX_NESTING, nesting};

/// Maximum length of an id in bytes.
const MAX_ID_BYTES: usize = 512;
/// Maximum length of an error text in characters.
const MAX_MESSAGE_CHARS: usize = 200;

/// Answer to a frame.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FrameAnswer {
    /// 0 for success.
    pub(super) code: i64,
    /// Error text.
    pub(super) message: String,
    /// Result.
    pub(super) body: Value,
}

/// Received frame.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Received {
    /// Message of a person.
    Message {
        /// Id with which it is answered on this connection.
        req_id: String,
        /// Content.
        body: Value,
    },
    /// Event other than a message.
    Event {
        /// Kind.
        kind: String,
    },
    /// Answer to a frame of the bot.
    Answer {
        /// Id of the frame.
        req_id: String,
        /// Answer.
        answer: FrameAnswer,
    },
}

/// Parses a frame. The error says what is wrong, without the content.
pub(super) fn parse(text: &str) -> Result<Received, String> {
    if nesting(text.as_bytes()) > MAX_NESTING {
        return Err("nested too deeply".to_owned());
    }
    let mut frame: Value =
        serde_json::from_str(text).map_err(|error| format!("invalid JSON: {error}"))?;
    let req_id = frame["headers"]["req_id"]
        .as_str()
        .filter(|id| id.len() <= MAX_ID_BYTES)
        .unwrap_or_default()
        .to_owned();
    let command = match &frame["cmd"] {
        Value::String(command) => command.clone(),
        Value::Null => String::new(),
        _ => return Err("cmd is not a text".to_owned()),
    };
    match command.as_str() {
        "aibot_msg_callback" if req_id.is_empty() => Err("a message has no req_id".to_owned()),
        "aibot_msg_callback" => Ok(Received::Message {
            req_id,
            body: frame["body"].take(),
        }),
        "aibot_event_callback" => Ok(Received::Event {
            kind: frame["body"]["event"]["eventtype"]
                .as_str()
                .unwrap_or_default()
                .chars()
                .take(64)
                .collect(),
        }),
        "" if req_id.is_empty() => Err("neither cmd nor req_id".to_owned()),
        "" => Ok(Received::Answer {
            req_id,
            answer: FrameAnswer {
                code: frame["errcode"].as_i64().unwrap_or(-1),
                message: frame["errmsg"]
                    .as_str()
                    .unwrap_or_default()
                    .chars()
                    .take(MAX_MESSAGE_CHARS)
                    .collect(),
                body: frame["body"].take(),
            },
        }),
        _ => Err("unknown cmd".to_owned()),
    }
}

/// Writes a frame.
pub(super) fn write(command: &str, req_id: &str, body: &Value) -> String {
    let mut frame = json!({"cmd": command, "headers": {"req_id": req_id}});
    if !body.is_null() {
        frame["body"] = body.clone();
    }
    frame.to_string()
}

/// Returns a new id of a frame that answers no message.
pub(super) fn new_request_id(command: &str, now_ms: i64) -> String {
    format!("{command}_{now_ms}_{:08x}", rand::random::<u32>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_frames_are_parsed() {
        let text = r#"{"cmd": "aibot_msg_callback", "headers": {"req_id": "REQ1"}, "body": {"msgid": "CAIQ1"}}"#;
        let expected = Received::Message {
            req_id: "REQ1".to_owned(),
            body: json!({"msgid": "CAIQ1"}),
        };
        assert_eq!(parse(text), Ok(expected));
        let text = r#"{"headers": {"req_id": "REQ1"}, "errcode": 846608, "errmsg": "stream message update expired"}"#;
        let Ok(Received::Answer { req_id, answer }) = parse(text) else {
            panic!("no answer");
        };
        assert_eq!((req_id.as_str(), answer.code), ("REQ1", 846_608));
    }

    #[test]
    fn malformed_frames_are_errors() {
        for text in [
            "",
            "{",
            "null",
            "[]",
            "1e999",
            r#"{"cmd": 1}"#,
            r#"{"cmd": "other", "headers": {"req_id": "a"}}"#,
            r#"{"cmd": "aibot_msg_callback"}"#,
            r#"{"headers": {"req_id": 1}}"#,
            &"[".repeat(100_000),
        ] {
            assert!(parse(text).is_err(), "{text:.40}");
        }
    }

    #[test]
    fn frames_equal_the_recording() {
        let body =
            json!({"msgtype": "stream", "stream": {"id": "s", "finish": false, "content": "Hel"}});
        let written: Value =
            serde_json::from_str(&write("aibot_respond_msg", "REQ1", &body)).unwrap();
        assert_eq!(
            written,
            json!({"cmd": "aibot_respond_msg", "headers": {"req_id": "REQ1"}, "body": body})
        );
        let ping: Value = serde_json::from_str(&write("ping", "p", &Value::Null)).unwrap();
        assert_eq!(ping, json!({"cmd": "ping", "headers": {"req_id": "p"}}));
    }
}
