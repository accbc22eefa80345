//! Providers that fail: the user reads why, the run says so, the thread lives on.

use deerflow_tests::gateway::ReservedPort;
use serde_json::json;

use crate::rig::{CANARY, Finished, Rig, body, said, text};

/// The run ended in a visible message about the failure.
async fn fell_back(rig: &Rig, words: &str) -> Finished {
    let run = rig.say(words).await;
    assert_eq!(run.names().last(), Some(&"end"), "{words}");
    assert_eq!(
        run.data("error").len(),
        0,
        "{words}: provider failures are no error events"
    );
    let shown = rig.shown_run(&run.thread, &run.run).await;
    assert_eq!(shown["status"], "error", "{words}: {shown}");
    assert!(shown["error"].is_string(), "{words}: {shown}");
    let last = run.last_values()["messages"]
        .as_array()
        .and_then(|all| all.last().cloned())
        .expect("a message");
    assert_eq!(last["type"], "ai", "{words}: {last}");
    assert_eq!(
        last["additional_kwargs"]["deerflow_error_fallback"], true,
        "{words}: {last}"
    );
    for reason in ["error_type", "error_reason", "error_detail"] {
        assert!(
            last["additional_kwargs"][reason].is_string(),
            "{words}: {reason}: {last}"
        );
    }
    let bytes: String = run
        .frames
        .iter()
        .map(|frame| String::from_utf8_lossy(&frame.raw).into_owned())
        .collect();
    assert!(!bytes.contains(CANARY), "{words}");
    let next = rig.run(&run.thread, &body("then say fine")).await;
    assert_eq!(
        rig.shown_run(&run.thread, &next.run).await["status"],
        "success",
        "{words}"
    );
    assert_eq!(
        rig.talk(&run.thread).await.last(),
        said(&[("ai", "fine")]).first()
    );
    assert_eq!(rig.model.rejections(), 0, "{words}");
    run
}

#[tokio::test]
async fn a_provider_that_refuses_is_asked_once() {
    let rig = Rig::start().await;
    for words in ["[[error 400]]", "[[error 401]]"] {
        let before = rig.model.requests().len();
        let run = rig.say(words).await;
        let asked = rig.model.requests()[before..]
            .iter()
            .filter(|request| !request.tools.is_empty())
            .count();
        assert_eq!(asked, 1, "{words}: {:?}", run.names());
        fell_back(&rig, words).await;
    }
}

#[tokio::test]
async fn a_provider_that_stumbles_is_asked_again_and_the_user_hears_of_it() {
    let rig = Rig::start().await;
    for words in [
        "[[error 429 times=1]] then say x",
        "[[error 500 times=2]] then say x",
    ] {
        let run = rig.say(words).await;
        assert_eq!(
            rig.shown_run(&run.thread, &run.run).await["status"],
            "success",
            "{words}"
        );
        assert_eq!(
            rig.talk(&run.thread).await,
            said(&[("human", words), ("ai", "x")])
        );
        let retries = run.data("custom");
        assert!(!retries.is_empty(), "{words}");
        for (at, retry) in retries.iter().enumerate() {
            assert_eq!(retry["type"], "llm_retry", "{words}: {retry}");
            assert_eq!(retry["attempt"], at + 1, "{words}: {retry}");
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
async fn a_provider_that_keeps_failing_is_reported() {
    let rig = Rig::with("circuit_breaker: {failure_threshold: 1000}").await;
    for words in ["[[error 500]]", "[[error 429]]", "[[error 503]]"] {
        fell_back(&rig, words).await;
    }
}

#[tokio::test]
async fn a_provider_that_breaks_off_or_talks_nonsense_is_reported() {
    let rig = Rig::with("circuit_breaker: {failure_threshold: 1000}").await;
    for words in [
        "[[cut 0]]",
        "[[cut 2]] then say one two three four",
        "[[garbage]] then say one two three four",
    ] {
        fell_back(&rig, words).await;
    }
}

#[tokio::test]
async fn a_provider_that_falls_silent_is_given_up() {
    let rig = Rig::hasty("circuit_breaker: {failure_threshold: 1000}").await;
    fell_back(&rig, "[[hang]]").await;
}

#[tokio::test]
async fn a_provider_that_is_not_there_is_reported() {
    let nobody = ReservedPort::new().expect("a port");
    let rig = Rig::asking(&format!("http://{}/v1", nobody.address())).await;
    let thread = rig.thread().await;
    let run = rig.run(&thread, &body("hi")).await;
    assert_eq!(rig.shown_run(&thread, &run.run).await["status"], "error");
    let last = run.last_values()["messages"]
        .as_array()
        .and_then(|all| all.last().cloned())
        .expect("a message");
    assert_eq!(
        last["additional_kwargs"]["deerflow_error_fallback"],
        json!(true)
    );
}
