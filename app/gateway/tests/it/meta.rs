//! Server-wide behaviour: unknown routes, methods and bodies, and the web UI's first requests.

use serde_json::json;

use crate::support::Gateway;

#[tokio::test]
async fn unknown_routes_and_methods_are_json_in_every_prefix() {
    let gateway = Gateway::new();
    for prefix in ["", "/api", "/api/langgraph"] {
        let missing = gateway.get(&format!("{prefix}/no/such/route")).await;
        assert_eq!(
            (missing.code(), missing.json()),
            (404, json!({ "detail": "Not Found" })),
            "{prefix}"
        );
        let wrong = gateway
            .send("PUT", &format!("{prefix}/threads"), None)
            .await;
        assert_eq!(
            (wrong.code(), wrong.json()),
            (405, json!({ "detail": "Method Not Allowed" })),
            "{prefix}"
        );
        assert_eq!(wrong.header("allow"), "POST", "{prefix}");
    }
}

#[tokio::test]
async fn malformed_deep_and_large_bodies_are_rejected() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let deep = format!("{}{}", "[".repeat(1_000), "]".repeat(1_000));
    let deep = format!("{{\"input\":{deep}}}");
    for (path, body, code) in [
        ("/threads", "{bad".to_owned(), 422),
        ("/threads", String::new(), 422),
        ("/threads", "[1]".to_owned(), 422),
        (
            &*format!("/threads/{thread}/runs/stream"),
            deep.clone(),
            422,
        ),
        (&*format!("/api/threads/{thread}/runs/stream"), deep, 422),
        (
            &*format!("/api/threads/{thread}/runs/stream"),
            format!("{{\"input\":\"{}\"}}", "x".repeat(4 << 20)),
            422,
        ),
        (
            &*format!("/api/threads/{thread}/runs/stream"),
            format!("{{\"input\":\"{}\"}}", "x".repeat(10 << 20)),
            413,
        ),
        (
            "/api/threads",
            format!("{{\"x\":\"{}\"}}", "x".repeat(21 << 20)),
            413,
        ),
    ] {
        let response = gateway.raw("POST", path, body, &[]).await;
        assert_eq!(
            response.code(),
            code,
            "{path}: {}",
            response.text().chars().take(200).collect::<String>()
        );
        assert!(response.body.len() < 4_000, "{path}");
    }
}

#[tokio::test]
async fn root_responds_as_the_platform() {
    let gateway = Gateway::new();
    for path in ["/ok", "/", "/ok?check_db=1"] {
        let alive = json!({ "ok": true, "services": {} });
        assert_eq!(gateway.get(path).await.json(), alive);
    }
    assert_eq!(gateway.get("/health").await.json()["status"], "healthy");
    assert_eq!(
        gateway.get("/info").await.json()["flags"]["assistants"],
        true
    );
    let invalid = gateway.raw("POST", "/threads", "{bad", &[]).await;
    assert_eq!(
        invalid.json(),
        json!({ "detail": "Invalid JSON in request body: key must be a string at line 1 column 2" })
    );
}

#[tokio::test]
async fn initial_requests_of_the_web_ui_succeed() {
    let gateway = Gateway::new();
    let table = [
        (
            "/api/models",
            json!({ "models": [{ "name": "fake", "model": "fake-1", "display_name": "Fake", "description": null,
                "supports_thinking": false, "supports_reasoning_effort": false }], "token_usage": { "enabled": true } }),
        ),
        (
            "/api/features",
            json!({ "agents_api": { "enabled": false }, "browser_control": { "enabled": false }, "mcp_tasks": { "enabled": false } }),
        ),
        (
            "/api/suggestions/config",
            json!({ "enabled": true, "max_suggestions": 3 }),
        ),
        ("/api/skills", json!({ "skills": [] })),
        (
            "/api/channels/providers",
            json!({ "enabled": false, "providers": [] }),
        ),
        (
            "/api/threads/63fc735a-a27d-408f-adc4-705b1c1c7001/uploads/limits",
            json!({ "max_files": 10, "max_file_size": 52_428_800, "max_total_size": 104_857_600 }),
        ),
        (
            "/api/v1/auth/setup-status",
            json!({ "needs_setup": true, "registration_enabled": true }),
        ),
    ];
    for (path, expected) in table {
        let response = gateway.get(path).await;
        assert_eq!(
            (response.code(), response.json()),
            (200, expected),
            "{path}"
        );
    }
    assert_eq!(
        gateway
            .post("/api/langgraph/threads/search", json!({ "limit": 50 }))
            .await
            .json(),
        json!([])
    );
    let me = gateway.get("/api/v1/auth/me").await.json();
    assert_eq!(
        (&me["id"], &me["system_role"], &me["needs_setup"]),
        (&json!("default"), &json!("admin"), &json!(false))
    );
    let agents = gateway.get("/api/agents").await;
    assert!(agents.code() == 403 && agents.text().contains("agents_api.enabled"));
    let missing = gateway.get("/api/models/none").await;
    assert_eq!(
        (missing.code(), missing.json()),
        (404, json!({ "detail": "Model 'none' not found" }))
    );
}

#[tokio::test]
async fn assistants_are_identified_by_name_or_id_per_dialect() {
    let gateway = Gateway::new();
    let deerflow = gateway
        .post("/api/assistants/search", json!({}))
        .await
        .json();
    assert_eq!(deerflow[0]["assistant_id"], "lead_agent");
    let platform = gateway.post("/assistants/search", json!({})).await;
    assert_eq!(platform.header("x-pagination-total"), "1");
    let id = platform.json()[0]["assistant_id"]
        .as_str()
        .expect("an id")
        .to_owned();
    assert_eq!(
        gateway.get(&format!("/assistants/{id}")).await.json()["graph_id"],
        "lead_agent"
    );
    assert_eq!(
        gateway.get("/assistants/lead_agent").await.json(),
        json!({ "detail": "Invalid assistant ID: must be a UUID" })
    );
    assert_eq!(
        gateway
            .get("/assistants/9c909fe5-1423-4566-9403-37f8a945b29b")
            .await
            .code(),
        404
    );
    let graph = gateway
        .get("/assistants/lead_agent/graph?xray=true")
        .await
        .json();
    let names: Vec<&str> = graph["nodes"]
        .as_array()
        .expect("nodes")
        .iter()
        .filter_map(|node| node["id"].as_str())
        .collect();
    assert_eq!(names, ["__start__", "model", "tools", "__end__"]);
    assert_eq!(
        gateway
            .get("/assistants/lead_agent/graph?xray=0")
            .await
            .code(),
        422
    );
    let schemas = gateway
        .get(&format!("/assistants/{id}/schemas"))
        .await
        .json();
    assert!(schemas["state_schema"]["properties"]["messages"].is_object());
}

#[tokio::test]
async fn pages_of_a_configured_origin_may_read_every_response() {
    let gateway = Gateway::new();
    let origin = ("origin", "https://ui.test");
    let preflight_headers = [
        origin,
        ("access-control-request-method", "PATCH"),
        ("access-control-request-headers", "x-mine,content-type"),
    ];
    let preflight = gateway
        .raw("OPTIONS", "/api/threads/t", "", &preflight_headers)
        .await;
    assert_eq!(preflight.code(), 200);
    assert_eq!(
        preflight.header("access-control-allow-origin"),
        "https://ui.test"
    );
    assert_eq!(preflight.header("access-control-allow-credentials"), "true");
    let methods = preflight.header("access-control-allow-methods");
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
        assert!(methods.contains(method), "{methods}");
    }
    assert_eq!(
        preflight.header("access-control-allow-headers"),
        "x-mine,content-type"
    );
    for path in ["/threads", "/api/threads", "/no/such/route"] {
        let response = gateway.raw("POST", path, "{}", &[origin]).await;
        assert_eq!(
            response.header("access-control-allow-origin"),
            "https://ui.test",
            "{path}"
        );
        let exposed = response.header("access-control-expose-headers");
        assert_eq!(
            exposed,
            "content-location,location,x-pagination-total,x-pagination-next,idempotent-replayed,x-trace-id",
            "{path}"
        );
    }
    let foreign = gateway
        .raw("POST", "/threads", "{}", &[("origin", "https://evil.test")])
        .await;
    assert_eq!(foreign.code(), 403);
    assert!(
        foreign
            .text()
            .contains("Cross-site request denied: the page's origin is"),
        "{}",
        foreign.text()
    );
    assert_eq!(foreign.header("access-control-allow-origin"), "");
}

#[tokio::test]
async fn ready_reports_whether_runs_are_accepted() {
    let gateway = Gateway::new();
    let ready = gateway.get("/ready").await;
    assert_eq!(
        (ready.code(), &ready.json()["status"]),
        (200, &json!("ready"))
    );
    for part in ["database", "stream_bridge", "lease"] {
        assert_eq!(ready.json()["checks"][part]["state"], "ok", "{part}");
    }
    gateway.shutdown.cancel();
    let stopping = gateway.get("/ready").await;
    assert_eq!(
        (stopping.code(), &stopping.json()["status"]),
        (503, &json!("shutting down"))
    );
    // The process is alive as long as it responds.
    assert_eq!(
        (
            gateway.get("/health").await.code(),
            gateway.get("/metrics").await.code()
        ),
        (200, 200)
    );
}
