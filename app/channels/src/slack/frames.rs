//! Frames of a Socket Mode connection.

use serde::Deserialize;
use serde_json::Value;

use crate::platform::{MAX_NESTING, nesting};

/// Decoded frame.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Frame {
    /// The connection is established.
    Hello,
    /// The connection will end.
    Disconnect(String),
    /// Envelope.
    Envelope {
        /// Id of the acknowledgement.
        id: String,
        /// Kind.
        kind: String,
        /// Number of earlier deliveries.
        retry: u64,
        /// Payload.
        payload: Value,
    },
    /// Frame that cannot be decoded.
    Broken {
        /// Id of the acknowledgement, if it is known.
        id: Option<String>,
        /// Problem.
        problem: String,
    },
}

/// Fields outside of the payload. The payload is skipped without recursion, so that the id of an
/// envelope with a deeply nested payload is found.
#[derive(Debug, Deserialize)]
struct Head {
    #[serde(default)]
    envelope_id: Option<String>,
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    reason: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Content {
    #[serde(default)]
    payload: Value,
    #[serde(default)]
    retry_attempt: Value,
}

/// Decodes a text frame.
pub(super) fn decode(text: &str) -> Frame {
    let broken = |id: Option<String>, problem: &str| Frame::Broken {
        id,
        problem: problem.to_owned(),
    };
    let head: Head = match serde_json::from_str(text) {
        Ok(head) => head,
        Err(error) => return broken(None, &format!("not a frame: {error}")),
    };
    let kind = head.kind.unwrap_or_default();
    match (kind.as_str(), head.envelope_id) {
        ("hello", _) => Frame::Hello,
        ("disconnect", _) => Frame::Disconnect(head.reason.unwrap_or_default()),
        (_, None) => broken(None, "a frame without an id"),
        (_, Some(id)) if id.is_empty() || id.len() > 256 => broken(None, "an invalid id"),
        (_, Some(id)) if nesting(text.as_bytes()) > MAX_NESTING => {
            broken(Some(id), "an event nested too deeply")
        }
        (_, Some(id)) => match serde_json::from_str::<Content>(text) {
            Ok(content) => Frame::Envelope {
                id,
                kind,
                retry: content.retry_attempt.as_u64().unwrap_or_default(),
                payload: content.payload,
            },
            Err(error) => broken(Some(id), &format!("not an envelope: {error}")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> String {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        format!(r#"{{"envelope_id":"e","type":"events_api","payload":{{"a":{open}{close}}}}}"#)
    }

    #[test]
    fn frames_decode_by_type() {
        assert_eq!(
            decode(r#"{"type":"hello","num_connections":1}"#),
            Frame::Hello
        );
        let disconnect = r#"{"type":"disconnect","reason":"warning"}"#;
        assert_eq!(decode(disconnect), Frame::Disconnect("warning".to_owned()));
        let envelope =
            r#"{"envelope_id":"e-1","type":"events_api","retry_attempt":1,"payload":{"a":1}}"#;
        let expected = Frame::Envelope {
            id: "e-1".to_owned(),
            kind: "events_api".to_owned(),
            retry: 1,
            payload: serde_json::json!({"a": 1}),
        };
        assert_eq!(decode(envelope), expected);
    }

    #[test]
    fn deep_payloads_are_broken_but_have_an_id() {
        assert!(matches!(decode(&nested(62)), Frame::Envelope { .. }));
        for levels in [63, 200, 100_000] {
            let Frame::Broken { id, .. } = decode(&nested(levels)) else {
                panic!("{levels} levels were accepted");
            };
            assert_eq!(id.as_deref(), Some("e"), "{levels}");
        }
    }

    #[test]
    fn hostile_frames_are_broken() {
        for text in [
            "",
            "null",
            "[]",
            "{",
            "{}",
            "\u{0}",
            r#"{"type":7}"#,
            r#"{"envelope_id":7,"type":"events_api"}"#,
            r#"{"envelope_id":"","type":"events_api"}"#,
            r#"{"envelope_id":"a","envelope_id":"b"}"#,
        ] {
            assert!(matches!(decode(text), Frame::Broken { .. }), "{text}");
        }
        let huge = r#"{"envelope_id":"e","retry_attempt":1e999}"#;
        assert!(matches!(decode(huge), Frame::Broken { .. }));
    }
}
