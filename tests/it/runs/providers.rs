//! Failing providers: the user reads the reason, the run reports it, and the thread stays usable.

use deerflow_tests::reserved_port::ReservedPort;
use serde_json::json;

use crate::rig::{CANARY, FinishedRun, Rig, body, messages_of, text};

/// Runs to a visible message about the failure.
async fn run_to_failure_message(rig: &Rig, prompt: &str) -> FinishedRun {
    let run = rig.run_prompt(prompt).await;
    assert_eq!(run.names().last(), Some(&"end"), "{prompt}");
    assert_eq!(
        run.data("error").len(),
        0,
        "{prompt}: provider failures are not error events"
    );
    let stored = rig.get_run(&run.thread, &run.run).await;
    assert_eq!(stored["status"], "error", "{prompt}: {stored}");
    assert!(stored["error"].is_string(), "{prompt}: {stored}");
    let last = run.last_values()["messages"]
        .as_array()
        .and_then(|all| all.last().cloned())
        .expect("a message");
    assert_eq!(last["type"], "ai", "{prompt}: {last}");
    assert_eq!(
        last["additional_kwargs"]["deerflow_error_fallback"], true,
        "{prompt}: {last}"
    );
    for reason in ["error_type", "error_reason", "error_detail"] {
        assert!(
            last["additional_kwargs"][reason].is_string(),
            "{prompt}: {reason}: {last}"
        );
    }
    let bytes: String = run
        .frames
        .iter()
        .map(|frame| String::from_utf8_lossy(&frame.raw).into_owned())
        .collect();
    assert!(!bytes.contains(CANARY), "{prompt}");
    let next = rig.run(&run.thread, &body("then say fine")).await;
    assert_eq!(
        rig.get_run(&run.thread, &next.run).await["status"],
        "success",
        "{prompt}"
    );
    assert_eq!(
        rig.visible_messages(&run.thread).await.last(),
        messages_of(&[("ai", "fine")]).first()
    );
    assert_eq!(rig.model.rejections(), 0, "{prompt}");
    run
}

#[tokio::test]
async fn provider_refusal_is_not_retried() {
    let rig = Rig::start().await;
    for prompt in ["[[error 400]]", "[[error 401]]"] {
        let before = rig.model.requests().len();
        let run = rig.run_prompt(prompt).await;
        let requests = rig.model.requests()[before..]
            .iter()
            .filter(|request| !request.tools.is_empty())
            .count();
        assert_eq!(requests, 1, "{prompt}: {:?}", run.names());
        run_to_failure_message(&rig, prompt).await;
    }
}

#[tokio::test]
async fn transient_provider_error_is_retried_and_reported() {
    let rig = Rig::start().await;
    for prompt in [
        "[[error 429 times=1]] then say x",
        "[[error 500 times=2]] then say x",
    ] {
        let run = rig.run_prompt(prompt).await;
        assert_eq!(
            rig.get_run(&run.thread, &run.run).await["status"],
            "success",
            "{prompt}"
        );
        assert_eq!(
            rig.visible_messages(&run.thread).await,
            messages_of(&[("human", prompt), ("ai", "x")])
        );
        let retries = run.data("custom");
        assert!(!retries.is_empty(), "{prompt}");
        for (at, retry) in retries.iter().enumerate() {
            assert_eq!(retry["type"], "llm_retry", "{prompt}: {retry}");
            assert_eq!(retry["attempt"], at + 1, "{prompt}: {retry}");
            assert!(
                retry["wait_ms"].is_number() && retry["max_attempts"].is_number(),
                "{retry}"
            );
            assert!(
                !text(&retry["message"]).is_empty() && !text(&retry["reason"]).is_empty(),
                "{retry}"
            );
        }
    }
}

#[tokio::test]
async fn permanent_provider_failure_is_reported() {
    let rig = Rig::with("circuit_breaker: {failure_threshold: 1000}").await;
    for prompt in ["[[error 500]]", "[[error 429]]", "[[error 503]]"] {
        run_to_failure_message(&rig, prompt).await;
    }
}

#[tokio::test]
async fn truncated_or_invalid_provider_stream_is_reported() {
    let rig = Rig::with("circuit_breaker: {failure_threshold: 1000}").await;
    for prompt in [
        "[[cut 0]]",
        "[[cut 2]] then say one two three four",
        "[[garbage]] then say one two three four",
    ] {
        run_to_failure_message(&rig, prompt).await;
    }
}

#[tokio::test]
async fn silent_provider_times_out() {
    let rig = Rig::with_stream_timeout("circuit_breaker: {failure_threshold: 1000}").await;
    run_to_failure_message(&rig, "[[hang]]").await;
}

#[tokio::test]
async fn unreachable_provider_is_reported() {
    let unused_port = ReservedPort::new().expect("a port");
    let rig = Rig::with_model_at(&format!("http://{}/v1", unused_port.address())).await;
    let thread = rig.thread().await;
    let run = rig.run(&thread, &body("hi")).await;
    assert_eq!(rig.get_run(&thread, &run.run).await["status"], "error");
    let last = run.last_values()["messages"]
        .as_array()
        .and_then(|all| all.last().cloned())
        .expect("a message");
    assert_eq!(
        last["additional_kwargs"]["deerflow_error_fallback"],
        json!(true)
    );
}
