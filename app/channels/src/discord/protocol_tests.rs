//! Tests of the frames of the gateway.

use serde_json::json;

use super::*;

#[test]
fn recorded_frames_are_decoded() {
    let cases = [
        (
            r#"{"op": 10, "d": {"heartbeat_interval": 41250}, "s": null, "t": null}"#,
            Received::Hello(41250),
        ),
        (
            r#"{"op": 11, "d": null, "s": null, "t": null}"#,
            Received::Acknowledged,
        ),
        (
            r#"{"op": 7, "d": null, "s": null, "t": null}"#,
            Received::Reconnect,
        ),
        (r#"{"op": 9, "d": false}"#, Received::Invalid(false)),
        (r#"{"op": 9, "d": true}"#, Received::Invalid(true)),
        (r#"{"op": 1, "d": null}"#, Received::HeartbeatRequest),
        (
            r#"{"op": 0, "t": "RESUMED", "s": 4, "d": {"_trace": []}}"#,
            Received::Event(Dispatch {
                seq: 4,
                kind: "RESUMED".to_owned(),
                data: json!({"_trace": []}),
            }),
        ),
        (
            r#"{"op": 0, "t": "TYPING_START", "s": 5, "d": {"a": 1}}"#,
            Received::Event(Dispatch {
                seq: 5,
                kind: "TYPING_START".to_owned(),
                data: Value::Null,
            }),
        ),
        (r#"{"op": 99}"#, Received::Other),
        ("[]", Received::Other),
    ];
    for (text, expected) in cases {
        assert_eq!(decode(text), Ok(expected), "{text}");
    }
}

#[test]
fn hostile_frames_are_refused() {
    for text in [
        "",
        "{",
        "\u{0}",
        r#"{"op":0,"s":-1,"t":"MESSAGE_CREATE","d":{}}"#,
        r#"{"op":0,"s":"7","t":"MESSAGE_CREATE","d":{}}"#,
        r#"{"op":10,"d":null}"#,
        r#"{"op":10,"d":{"heartbeat_interval":-5}}"#,
    ] {
        assert!(decode(text).is_err(), "{text}");
    }
    let bottomless = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(decode(&bottomless).is_err());
}

#[test]
fn deep_event_keeps_its_number_without_data() {
    let deep = |levels: usize| {
        let nested = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let text = format!(r#"{{"op":0,"s":9,"t":"MESSAGE_CREATE","d":{{"x":{nested}}}}}"#);
        match decode(&text) {
            Ok(Received::Event(event)) => (event.seq, event.data.is_null()),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(deep(62), (9, false));
    assert_eq!(deep(63), (9, true));
}

#[test]
fn close_codes_decide_the_next_step() {
    for code in [4004, 4010, 4011, 4012, 4013, 4014] {
        assert!(
            matches!(
                after_close(Some(code), ""),
                Next::Fail(PlatformError::Rejected(_))
            ),
            "{code}"
        );
    }
    for code in [None, Some(1000), Some(1001), Some(4000), Some(4001)] {
        assert_eq!(after_close(code, ""), Next::Resume, "{code:?}");
    }
    for code in [4007, 4009] {
        assert_eq!(after_close(Some(code), ""), Next::Identify, "{code}");
    }
}

#[test]
fn frames_have_the_recorded_form() {
    let token = SecretString::from("TOKEN");
    let session = Session {
        session_id: "sess".to_owned(),
        resume_gateway_url: String::new(),
        seq: 2,
    };
    let parsed = |text: String| serde_json::from_str::<Value>(&text).unwrap();
    assert_eq!(
        parsed(resume(&token, &session)),
        json!({"op": 6, "d": {"seq": 2, "session_id": "sess", "token": "TOKEN"}})
    );
    assert_eq!(parsed(heartbeat(None)), json!({"op": 1, "d": null}));
    assert_eq!(parsed(identify(&token))["d"]["intents"], 37377);
}
