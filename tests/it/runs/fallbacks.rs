//! Fallback keys and models, waits that providers request, and providers that are temporarily
//! skipped.

use std::net::TcpListener;

use deerflow_tests::reserved_port::ReservedPort;
use serde_json::json;

use crate::rig::{CANARY, FinishedRun, MODEL, Rig, config, list, messages_of, text};

/// Name of the fallback model.
const SECOND: &str = "second";

/// Starts a gateway whose first model has the lines that `lines` returns for the provider's
/// address, in place of key and address.
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

/// Returns the lines of a first model with a fallback.
fn model_with_fallback(base_url: &str) -> String {
    format!("    api_key: {CANARY}\n    base_url: {base_url}\n    fallback_models: [{SECOND}]\n")
}

/// Runs `prompt` to the answer `x` and asserts that journal and usage attribute it to `model`.
async fn answered_by(rig: &Rig, model: &str, prompt: &str) -> FinishedRun {
    let run = rig.run_prompt(prompt).await;
    let stored = rig.get_run(&run.thread, &run.run).await;
    assert_eq!(
        (&stored["status"], &stored["llm_call_count"]),
        (&json!("success"), &json!(1)),
        "{prompt}: {stored}"
    );
    assert_eq!(
        rig.visible_messages(&run.thread).await,
        messages_of(&[("human", prompt), ("ai", "x")])
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
    assert_eq!(models, [model], "{prompt}");
    let usage = rig
        .get(&format!("/api/threads/{}/token-usage", run.thread))
        .await
        .ok();
    let models: Vec<&String> = usage["by_model"]
        .as_object()
        .expect("models")
        .keys()
        .collect();
    assert_eq!(models, [model], "{prompt}");
    run
}

/// Returns the models that were requested from the provider, in order.
fn asked(rig: &Rig) -> Vec<String> {
    rig.model
        .requests()
        .iter()
        .map(|request| request.model.clone().unwrap_or_default())
        .collect()
}

#[tokio::test]
async fn rejected_key_falls_back_to_next_which_stays_active() {
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
                "{status}: users need not know about keys"
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
async fn model_with_unavailable_server_falls_back() {
    let unused_port = ReservedPort::new().expect("a port");
    // The system accepts its connections, but no process reads from them.
    let mute = TcpListener::bind("127.0.0.1:0").expect("a port");
    for (address, more, tries) in [
        (unused_port.address(), "", 3),
        (mute.local_addr().expect("address"), "    timeout: 0.2\n", 2),
    ] {
        let rig = rig(
            |_| {
                format!(
                    "{}{more}",
                    model_with_fallback(&format!("http://{address}/v1"))
                )
            },
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
async fn retry_after_is_honoured_unless_too_long() {
    // The gateway's default wait is ten minutes.
    let patient = |config: String| {
        config
            .replace("delay_ms: 1,", "delay_ms: 600000,")
            .replace("delay_ms: 2,", "delay_ms: 600000,")
    };
    let rig = rig(model_with_fallback, patient).await;
    let run = answered_by(&rig, MODEL, "[[error 429 times=1]] then say x").await;
    assert_eq!(run.data("custom")[0]["wait_ms"], 0);
    let run = answered_by(&rig, SECOND, "[[error 503 times=1 after=3600]] then say x").await;
    assert_eq!(
        run.data("custom").len(),
        0,
        "the gateway does not wait for an hour"
    );
    assert_eq!(
        asked(&rig),
        ["scripted-1", "scripted-1", "scripted-1", "scripted-2"]
    );
}

#[tokio::test]
async fn failing_provider_is_skipped_while_fallback_answers() {
    let breaking = |config| {
        format!("{config}circuit_breaker: {{failure_threshold: 1, recovery_timeout_sec: 3600}}\n")
    };
    let rig = rig(model_with_fallback, breaking).await;
    answered_by(&rig, SECOND, "[[error 500 times=3]] then say x").await;
    assert_eq!(
        asked(&rig),
        ["scripted-1", "scripted-1", "scripted-1", "scripted-2"]
    );
    answered_by(&rig, SECOND, "then say x").await;
    assert_eq!(
        asked(&rig)[4..],
        ["scripted-2"],
        "the first model is skipped"
    );
}
