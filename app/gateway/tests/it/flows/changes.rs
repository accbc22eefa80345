//! Creating, changing, restoring and deleting flows.

use serde_json::{Value, json};

use super::{YAML, codes, created, send};
use crate::support::{FLOW, Gateway};

fn named(name: &str) -> String {
    FLOW.replace("Say Hello", name)
}

#[tokio::test]
async fn created_flow_keeps_its_text_in_both_dialects() {
    let gateway = Gateway::new();
    let response = created(&gateway).await;
    let flow = response.json();
    assert_eq!(flow["flowId"], "say-hello");
    assert_eq!(flow["assistantId"], "flow-say-hello");
    assert_eq!(
        (&flow["version"], &flow["nodeCount"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(response.header("location"), "/flows/say-hello");
    for path in ["/flows/say-hello", "/api/flows/say-hello"] {
        let read = gateway.get(path).await;
        assert_eq!(read.json()["content"], FLOW);
        assert_eq!(read.header("etag"), response.header("etag"));
    }
}

#[tokio::test]
async fn flow_is_created_from_wrapped_json_with_an_id() {
    let gateway = Gateway::new();
    let response = gateway
        .post("/api/flows", json!({"id": "mine", "content": FLOW}))
        .await;
    assert_eq!(
        (response.code(), &response.json()["flowId"]),
        (201, &json!("mine"))
    );
    let other = send(&gateway, "POST", "/api/flows?id=other", FLOW).await;
    assert_eq!(other.json()["flowId"], "other");
    let text = gateway.get("/api/flows/mine").await.json()["content"].clone();
    assert_eq!(text, FLOW);
}

#[tokio::test]
async fn taken_reserved_and_system_ids_are_refused() {
    let gateway = Gateway::new();
    created(&gateway).await;
    for id in ["say-hello", "shipped", "schema", "validate"] {
        let response = send(&gateway, "POST", &format!("/api/flows?id={id}"), FLOW).await;
        assert_eq!(response.code(), 409, "{id}: {}", response.text());
    }
    for id in ["A", "a_b", "-a", &"x".repeat(60), "%2e%2e"] {
        let response = send(&gateway, "POST", &format!("/api/flows?id={id}"), FLOW).await;
        assert_eq!(response.code(), 422, "{id}: {}", response.text());
    }
}

#[tokio::test]
async fn agent_and_flow_cannot_have_one_assistant_name() {
    let gateway = Gateway::with_agents();
    let agent = json!({"name": "flow-new", "soul": "s"});
    let refused = gateway.post("/api/agents", agent).await;
    assert_eq!(refused.code(), 422, "{}", refused.text());
    gateway.add_agent("flow-old").await;
    let refused = send(&gateway, "POST", "/api/flows?id=old", FLOW).await;
    assert_eq!(refused.code(), 409, "{}", refused.text());
}

#[tokio::test]
async fn flows_beyond_the_quota_are_refused() {
    let gateway = Gateway::new();
    for n in 0..5 {
        let response = send(&gateway, "POST", &format!("/api/flows?id=f{n}"), FLOW).await;
        assert_eq!(response.code(), 201);
    }
    let response = send(&gateway, "POST", "/api/flows?id=f5", FLOW).await;
    assert_eq!(response.code(), 409, "{}", response.text());
    let changed = send(&gateway, "PUT", "/api/flows/f4", &named("Other")).await;
    assert_eq!(changed.code(), 200);
}

#[tokio::test]
async fn stale_if_match_is_refused() {
    let gateway = Gateway::new();
    let first = created(&gateway).await.header("etag").to_owned();
    let put = async |text: &str, tag: &str| {
        let headers = [YAML, ("if-match", tag)];
        let path = "/api/flows/say-hello";
        gateway.raw("PUT", path, text.to_owned(), &headers).await
    };
    let second = put(&named("Two"), &first).await;
    assert_eq!((second.code(), &second.json()["version"]), (200, &json!(2)));
    assert_eq!(put(&named("Three"), &first).await.code(), 412);
    assert_eq!(put(&named("Three"), "\"x\"").await.code(), 412);
    assert_eq!(put(&named("Three"), "*").await.code(), 200);
    let stale = [("if-match", first.as_str())];
    let path = "/api/flows/say-hello";
    assert_eq!(gateway.raw("DELETE", path, "", &stale).await.code(), 412);
    let restore = "/api/flows/say-hello/versions/1/restore";
    assert_eq!(gateway.raw("POST", restore, "", &stale).await.code(), 412);
    let current = gateway.get(path).await.header("etag").to_owned();
    let fresh = [("if-match", current.as_str())];
    assert_eq!(gateway.raw("DELETE", path, "", &fresh).await.code(), 204);
    assert_eq!(gateway.get(path).await.code(), 404);
}

#[tokio::test]
async fn versions_are_listed_and_restored_as_new_ones() {
    let gateway = Gateway::new();
    created(&gateway).await;
    for name in ["Two", "Three"] {
        send(&gateway, "PUT", "/api/flows/say-hello", &named(name)).await;
    }
    let restored = gateway
        .send("POST", "/api/flows/say-hello/versions/1/restore", None)
        .await;
    assert_eq!(
        (restored.code(), &restored.json()["version"]),
        (200, &json!(4))
    );
    let versions = gateway.get("/api/flows/say-hello/versions").await.json();
    let numbers: Vec<&Value> = versions
        .as_array()
        .unwrap()
        .iter()
        .map(|v| &v["version"])
        .collect();
    // The oldest one went with the quota of three versions.
    assert_eq!(numbers, [4, 3, 2]);
    let old = gateway.get("/api/flows/say-hello?version=2").await;
    assert_eq!(old.json()["content"], named("Two"));
    for path in [
        "/api/flows/say-hello?version=1",
        "/api/flows/say-hello/versions",
        "/api/flows/other/versions",
    ] {
        let expected = if path.ends_with("hello/versions") {
            200
        } else {
            404
        };
        assert_eq!(gateway.get(path).await.code(), expected, "{path}");
    }
    for number in ["1", "9", "x", "-1", "99999999999"] {
        let path = format!("/api/flows/say-hello/versions/{number}/restore");
        assert_eq!(
            gateway.send("POST", &path, None).await.code(),
            404,
            "{number}"
        );
    }
}

#[tokio::test]
async fn equal_text_creates_no_version() {
    let gateway = Gateway::new();
    created(&gateway).await;
    let same = send(&gateway, "PUT", "/api/flows/say-hello", FLOW).await;
    assert_eq!(same.json()["version"], 1);
}

#[tokio::test]
async fn invalid_flow_is_refused_with_all_findings() {
    let gateway = Gateway::new();
    created(&gateway).await;
    let invalid = FLOW
        .replace("agentId: a}]\n  edges", "agentId: ghost}]\n  edges")
        .replace("edges: []", "edges: [{source: greet, target: nowhere}]");
    for (method, path) in [("POST", "/api/flows?id=f"), ("PUT", "/flows/say-hello")] {
        let refused = send(&gateway, method, path, &invalid).await;
        assert_eq!(refused.code(), 422, "{}", refused.text());
        let mut codes = codes(&refused);
        codes.sort();
        assert_eq!(codes, ["agent_not_found", "edge_target_not_found"]);
    }
    assert_eq!(gateway.get("/api/flows/f").await.code(), 404);
    let unchanged = gateway.get("/api/flows/say-hello").await.json();
    assert_eq!(unchanged["content"], FLOW);
}

#[tokio::test]
async fn system_flow_is_read_only() {
    let gateway = Gateway::new();
    assert_eq!(
        gateway.get("/api/flows/shipped").await.json()["owner"],
        "system"
    );
    for (method, path) in [
        ("PUT", "/api/flows/shipped"),
        ("DELETE", "/api/flows/shipped"),
        ("POST", "/api/flows/shipped/versions/1/restore"),
    ] {
        let refused = send(&gateway, method, path, FLOW).await;
        assert_eq!(refused.code(), 409, "{method} {path}");
    }
}
