//! Lists and texts that are too long, and locations of their issues.

use serde_json::json;

use super::{Fixture, UNKNOWN};

#[tokio::test]
async fn too_many_runs_of_a_cancel_are_rejected() {
    let Fixture {
        gateway, thread, ..
    } = Fixture::new().await;
    for (count, code) in [(1_000, 404), (1_001, 422)] {
        let body = json!({ "thread_id": thread, "run_ids": vec![UNKNOWN; count] });
        let response = gateway.post("/api/runs/cancel", body).await;
        assert_eq!(response.code(), code, "{}", response.text());
        if code == 422 {
            let issue = &response.json()["detail"][0];
            assert_eq!(issue["loc"], json!(["body", "run_ids"]));
        }
    }
}

#[tokio::test]
async fn long_assistant_id_is_truncated_in_its_error() {
    let Fixture {
        gateway, thread, ..
    } = Fixture::new().await;
    let body = json!({ "assistant_id": "x".repeat(1_000_000) });
    let response = gateway.post(&format!("/threads/{thread}/runs"), body).await;
    assert_eq!(response.code(), 422);
    assert!(response.text().len() < 1_000, "{}", response.text().len());
    assert!(response.text().contains("Invalid assistant: 'xxx"));
}

#[tokio::test]
async fn issue_of_a_superstep_names_step_and_update() {
    let Fixture { gateway, .. } = Fixture::new().await;
    let update = json!({ "as_node": "__start__", "values": {} });
    for (wrong, place) in [
        (json!({ "values": {} }), r#"["as_node"]"#),
        (
            json!({ "as_node": "__start__", "values": 5 }),
            r#"["values"]"#,
        ),
        (
            json!({ "as_node": "__start__", "command": { "goto": 1 } }),
            r#"["command"]["goto"]"#,
        ),
        (json!({ "as_node": "__end__" }), ""),
    ] {
        let steps = json!([{ "updates": [] }, { "updates": [update, wrong] }]);
        let body = json!({ "supersteps": steps });
        let response = gateway.post("/threads", body).await;
        let detail = response.json()["detail"].to_string().replace('\\', "");
        let expected = format!(r#"On body["supersteps"][1]["updates"][1]{place}:"#);
        assert!(detail.contains(&expected), "{detail}");
    }
}
