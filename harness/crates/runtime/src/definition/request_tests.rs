//! Tests of the stored form of a run request.

use super::super::request_echo::RequestEcho;
use super::*;

/// Request as it is stored, without the key `describe_messages`, which older rows lack.
const STORED: &str = concat!(
    r#"{"scope":{"Stateful":{"thread_id":"t1","if_not_exists":"create"}},"run_id":"r1","#,
    r#""assistant":"lead_agent","input":{"Resume":{"yes":true}},"#,
    r#""config":{"recursion_limit":50,"options":{"model_name":"m"},"tags":["a"]},"#,
    r#""stream_modes":9,"stream_subgraphs":false,"echo_input":true,"#,
    r#""keep_partial":false,"durability":"async","interrupt_before":"None","#,
    r#""interrupt_after":{"Named":["tools"]},"multitask":"enqueue","#,
    r#""delay":{"secs":2,"nanos":0},"recovery":"fail","webhook":"https://example.org/","#,
    r#""request":null,"on_disconnect":"cancel","checkpoint":{"checkpoint_id":"c1"}}"#,
);

fn with_key(describe_messages: bool) -> String {
    STORED.replace(
        r#""keep_partial""#,
        &format!(r#""describe_messages":{describe_messages},"keep_partial""#),
    )
}

#[test]
fn stored_form_is_read_and_written_unchanged() {
    for describe_messages in [false, true] {
        let stored = with_key(describe_messages);
        let mut request: RunRequest = serde_json::from_str(&stored).unwrap();
        let presentation = RunPresentation {
            echo_input: true,
            describe_messages,
            request_echo: RequestEcho::default(),
        };
        assert_eq!(request.presentation, presentation);
        assert!(!request.keep_partial);
        // The record of the run has both.
        request.metadata.insert("secret".to_owned(), Value::Null);
        request.presentation.request_echo = Value::from("secret").into();
        assert_eq!(serde_json::to_string(&request).unwrap(), stored);
    }
}

#[test]
fn missing_describe_messages_is_false() {
    let request: RunRequest = serde_json::from_str(STORED).unwrap();
    assert_eq!(serde_json::to_string(&request).unwrap(), with_key(false));
}

#[test]
fn request_without_echo_input_is_unreadable() {
    let damaged = STORED.replace(r#""echo_input":true,"#, "");
    let error = serde_json::from_str::<RunRequest>(&damaged).unwrap_err();
    assert!(error.to_string().contains("echo_input"), "{error}");
}
