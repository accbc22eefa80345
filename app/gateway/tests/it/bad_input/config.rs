//! Run configurations that violate their schema, in runs, crons and assistants.

use serde_json::{Value, json};

use super::Fixture;
use crate::support::saying_with;

/// Returns the locations of the issues of a response in DeerFlow's form.
fn locations(response: &Value) -> Vec<Value> {
    let issues = response["detail"].as_array().expect("a list of issues");
    issues.iter().map(|issue| issue["loc"].clone()).collect()
}

#[tokio::test]
async fn all_invalid_parts_of_a_config_are_reported() {
    let fixture = Fixture::new().await;
    let path = format!("/api/threads/{}/runs", fixture.thread);
    let config = json!({ "tags": "x", "recursion_limit": 0, "configurable": [1] });
    let body = saying_with("hi", json!({ "config": config, "metadata": 5 }));
    let response = fixture.gateway.post(&path, body).await;
    assert_eq!(response.code(), 422, "{}", response.text());
    assert_eq!(
        locations(&response.json()),
        [
            json!(["body", "metadata"]),
            json!(["body", "config", "tags"]),
            json!(["body", "config", "recursion_limit"]),
            json!(["body", "config", "configurable"]),
        ]
    );
    let absent = json!({ "tags": null, "recursion_limit": null, "configurable": null });
    let body = saying_with("hi", json!({ "config": absent }));
    let accepted = fixture.gateway.post(&path, body).await;
    assert_eq!(accepted.code(), 200, "{}", accepted.text());
}

#[tokio::test]
async fn config_has_one_rule_for_runs_crons_and_assistants() {
    let fixture = Fixture::new().await;
    let assistant = json!({ "graph_id": "lead_agent", "config": { "tags": ["a"], "configurable": { "x": 1 } } });
    let made = fixture.gateway.post("/assistants", assistant).await.json();
    let run = json!({ "assistant_id": "lead_agent" });
    let thread_runs = format!("/threads/{}/runs", fixture.thread);
    let targets = [
        ("POST", thread_runs.clone(), run.clone()),
        ("POST", "/runs".to_owned(), run),
        (
            "POST",
            thread_runs,
            json!({ "assistant_id": made["assistant_id"] }),
        ),
        (
            "POST",
            "/runs/crons".to_owned(),
            json!({ "assistant_id": "lead_agent", "schedule": "0 8 * * *" }),
        ),
        (
            "PATCH",
            format!("/runs/crons/{}", fixture.cron),
            json!({ "enabled": true }),
        ),
        (
            "POST",
            "/assistants".to_owned(),
            json!({ "graph_id": "lead_agent" }),
        ),
        (
            "PATCH",
            format!("/assistants/{}", fixture.assistant),
            json!({}),
        ),
    ];
    for (method, path, body) in &targets {
        for (key, value) in [
            ("tags", json!("x")),
            ("tags", json!(["a", 1])),
            ("configurable", json!("x")),
            ("configurable", json!([1])),
            ("recursion_limit", json!(0)),
            ("recursion_limit", json!(1_u64 << 32)),
        ] {
            let mut body = body.clone();
            body["config"] = json!({ key: value });
            let response = fixture.gateway.send(method, path, Some(body.clone())).await;
            let detail = response.json()["detail"].to_string().replace('\\', "");
            assert!(
                response.code() == 422
                    && detail.contains(&format!(r#"On body["config"]["{key}"]:"#)),
                "{method} {path} {body}: {} {detail}",
                response.code()
            );
        }
    }
}
