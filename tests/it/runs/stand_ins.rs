//! Keys and models that stand in for others, waits that providers ask for, and providers that are left alone.

use std::net::TcpListener;

use deerflow_tests::gateway::ReservedPort;
use serde_json::json;

use crate::rig::{CANARY, Finished, MODEL, Rig, config, list, said, text};

/// The model behind the first.
const SECOND: &str = "second";

/// A gateway whose first model has these lines in its entry, given the provider's address, in place of key and address.
async fn rig(lines: impl FnOnce(&str) -> String, edit: impl FnOnce(String) -> String) -> Rig {
    let config = |base_url: &str| {
        let second = format!(
            "  - {{name: {SECOND}, use: openai, model: scripted-2, api_key: key-2, base_url: '{base_url}'}}\ntool_groups:"
        );
        let usual = config(base_url, "").replacen("tool_groups:", &second, 1);
        let keys = format!("    api_key: {CANARY}\n    base_url: {base_url}\n");
        assert!(usual.contains(&keys), "{usual}");
        edit(usual.replacen(&keys, &lines(base_url), 1))
    };
    Rig::configured(config, &[]).await
}

/// The lines of a first model that has a second behind it.
fn in_front(base_url: &str) -> String {
    format!("    api_key: {CANARY}\n    base_url: {base_url}\n    fallback_models: [{SECOND}]\n")
}

/// Runs `words` to the answer `x`, of which journal and usage say that `model` gave it.
async fn answered_by(rig: &Rig, model: &str, words: &str) -> Finished {
    let run = rig.say(words).await;
    let shown = rig.shown_run(&run.thread, &run.run).await;
    assert_eq!(
        (&shown["status"], &shown["llm_call_count"]),
        (&json!("success"), &json!(1)),
        "{words}: {shown}"
    );
    assert_eq!(
        rig.talk(&run.thread).await,
        said(&[("human", words), ("ai", "x")])
    );
    let answers = format!(
        "/api/threads/{}/runs/{}/events?event_types=llm.ai.response",
        run.thread, run.run
    );
    let answers = rig.get(&answers).await.ok();
    let models: Vec<&str> = list(&answers)
        .iter()
        .map(|row| text(&row["metadata"]["model"]))
        .collect();
    assert_eq!(models, [model], "{words}");
    let usage = rig
        .get(&format!("/api/threads/{}/token-usage", run.thread))
        .await
        .ok();
    let models: Vec<&String> = usage["by_model"]
        .as_object()
        .expect("models")
        .keys()
        .collect();
    assert_eq!(models, [model], "{words}");
    run
}

/// What the provider was asked for, in order.
fn asked(rig: &Rig) -> Vec<String> {
    rig.model
        .requests()
        .iter()
        .map(|request| request.model.clone().unwrap_or_default())
        .collect()
}

#[tokio::test]
async fn a_refused_key_is_followed_by_the_next_which_stays_in_use() {
    for status in [401, 429] {
        let rig = rig(
            |base_url| {
                format!("    api_keys: [refused-{status}, good-key]\n    base_url: {base_url}\n")
            },
            |config| config,
        )
        .await;
        for _ in 0..2 {
            let run = answered_by(&rig, MODEL, "then say x").await;
            assert_eq!(
                run.data("custom").len(),
                0,
                "{status}: a key is no matter of the user's"
            );
        }
        let keys: Vec<String> = rig
            .model
            .requests()
            .into_iter()
            .map(|request| request.auth)
            .collect();
        assert_eq!(
            keys,
            ["Bearer refus", "Bearer good-", "Bearer good-"],
            "{status}"
        );
        assert!(
            !rig.gateway.logs().contains("refused-"),
            "{status}: keys are not logged"
        );
    }
}

#[tokio::test]
async fn a_model_whose_server_is_down_or_silent_is_stood_in_for() {
    let nobody = ReservedPort::new().expect("a port");
    // The system takes its connections, nobody reads from them.
    let mute = TcpListener::bind("127.0.0.1:0").expect("a port");
    for (address, more, tries) in [
        (nobody.address(), "", 3),
        (mute.local_addr().expect("address"), "    timeout: 0.2\n", 2),
    ] {
        let rig = rig(
            |_| format!("{}{more}", in_front(&format!("http://{address}/v1"))),
            |config| config,
        )
        .await;
        let run = answered_by(&rig, SECOND, "then say x").await;
        let retries = run.data("custom");
        assert!(
            retries.iter().all(|retry| retry["type"] == "llm_retry"),
            "{retries:?}"
        );
        assert_eq!(
            (retries.len() + 1, asked(&rig)),
            (tries, vec!["scripted-2".to_owned()])
        );
    }
}

#[tokio::test]
async fn what_a_provider_asks_for_is_waited_for_unless_it_is_too_long() {
    // Of its own the gateway would wait for ten minutes.
    let patient = |config: String| {
        config
            .replace("delay_ms: 1,", "delay_ms: 600000,")
            .replace("delay_ms: 2,", "delay_ms: 600000,")
    };
    let rig = rig(in_front, patient).await;
    let run = answered_by(&rig, MODEL, "[[error 429 times=1]] then say x").await;
    assert_eq!(run.data("custom")[0]["wait_ms"], 0);
    let run = answered_by(&rig, SECOND, "[[error 503 times=1 after=3600]] then say x").await;
    assert_eq!(run.data("custom").len(), 0, "nobody waits for an hour");
    assert_eq!(
        asked(&rig),
        ["scripted-1", "scripted-1", "scripted-1", "scripted-2"]
    );
}

#[tokio::test]
async fn a_provider_that_keeps_failing_is_left_alone_while_another_answers() {
    let breaking = |config| {
        format!("{config}circuit_breaker: {{failure_threshold: 1, recovery_timeout_sec: 3600}}\n")
    };
    let rig = rig(in_front, breaking).await;
    answered_by(&rig, SECOND, "[[error 500 times=3]] then say x").await;
    assert_eq!(
        asked(&rig),
        ["scripted-1", "scripted-1", "scripted-1", "scripted-2"]
    );
    answered_by(&rig, SECOND, "then say x").await;
    assert_eq!(
        asked(&rig)[4..],
        ["scripted-2"],
        "the first is not asked any more"
    );
}
