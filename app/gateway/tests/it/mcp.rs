//! `/api/mcp`: permissions, and invalid requests.

use async_trait::async_trait;
use deerflow_domain::api_keys::{Rights, issue};
use harness::clock::{Clock, SystemClock};
use harness::mcp::settings::{McpChange, McpPort, McpPortError};
use parking_lot::Mutex;
use secrecy::ExposeSecret;
use serde_json::{Map, Value, json};

use crate::support::Gateway;

/// In-memory servers.
#[derive(Debug, Default)]
pub(crate) struct Servers(Mutex<Map<String, Value>>);

#[async_trait]
impl McpPort for Servers {
    async fn servers(&self) -> Result<Map<String, Value>, McpPortError> {
        Ok(self.0.lock().clone())
    }

    async fn change(&self, change: McpChange) -> Result<Map<String, Value>, McpPortError> {
        let mut servers = self.0.lock();
        let mut changed = servers.clone();
        change(&mut changed)?;
        *servers = changed.clone();
        Ok(changed)
    }

    async fn reset(&self) {}

    fn launchers(&self) -> Vec<String> {
        vec!["npx".to_owned()]
    }
}

#[tokio::test]
async fn servers_are_accessible_to_administrators_only() {
    let gateway = Gateway::new();
    let (_, key) = issue(
        &*gateway.keys,
        "ann",
        Rights::User,
        None,
        None,
        SystemClock.now(),
    )
    .await
    .expect("a key");
    let servers = json!({ "mcp_servers": { "s": { "command": "npx", "env": { "K": "canary" } } } });
    let change = json!({ "server_name": "s", "enabled": false });
    for (method, path, body) in [
        ("GET", "/api/mcp/config", Value::Null),
        ("PUT", "/api/mcp/config", servers.clone()),
        ("PATCH", "/api/mcp/config", change.clone()),
        ("POST", "/api/mcp/cache/reset", Value::Null),
    ] {
        let refused = gateway
            .raw(
                method,
                path,
                body.to_string(),
                &[("x-api-key", key.expose_secret())],
            )
            .await;
        let expected =
            json!({ "detail": "Admin privileges required to manage MCP configuration." });
        assert_eq!(
            (refused.code(), refused.json()),
            (403, expected),
            "{method} {path}"
        );
    }
    assert_eq!(
        gateway.send("GET", "/api/mcp/config", None).await.json(),
        json!({ "mcp_servers": {} })
    );
    let stored = gateway
        .send("PUT", "/api/mcp/config", Some(servers))
        .await
        .json();
    assert_eq!(stored["mcp_servers"]["s"]["env"], json!({ "K": "***" }));
    assert_eq!(
        gateway
            .send("PATCH", "/api/mcp/config", Some(change))
            .await
            .json()["mcp_servers"]["s"]["enabled"],
        false
    );
    assert_eq!(
        gateway
            .send("POST", "/api/mcp/cache/reset", None)
            .await
            .code(),
        200
    );
}

#[tokio::test]
async fn thread_has_no_mcp_tasks() {
    let gateway = Gateway::new();
    let thread = gateway
        .send("POST", "/api/threads", Some(json!({})))
        .await
        .json()["thread_id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let get = async |path: &str| {
        gateway
            .send("GET", &format!("/api/threads/{path}"), None)
            .await
    };
    assert_eq!(
        get(&format!("{thread}/mcp-tasks?limit=5")).await.json(),
        json!([])
    );
    assert_eq!(
        get(&format!("{thread}/mcp-tasks?limit=0")).await.code(),
        422
    );
    let missing = get(&format!("{thread}/mcp-tasks/x")).await;
    assert_eq!(
        (missing.code(), missing.json()),
        (404, json!({ "detail": "MCP task not found" }))
    );
    assert_eq!(get("unknown/mcp-tasks").await.code(), 404);
}
