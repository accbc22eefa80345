//! `/api/agents` and `/api/user-profile`: custom agents over HTTP.

use harness::user_memory::MemoryScope;
use serde_json::{Value, json};

use crate::keys::User;
use crate::support::Gateway;

#[tokio::test]
async fn agents_are_unavailable_when_disabled() {
    let gateway = Gateway::new();
    let draft = json!({ "name": "a", "content": "x" });
    for (method, path) in [
        ("GET", "/api/agents"),
        ("POST", "/api/agents"),
        ("GET", "/api/agents/check?name=a"),
        ("GET", "/api/agents/a"),
        ("PUT", "/api/agents/a"),
        ("DELETE", "/api/agents/a"),
        ("GET", "/api/user-profile"),
        ("PUT", "/api/user-profile"),
    ] {
        let refused = gateway.send(method, path, Some(draft.clone())).await;
        assert!(
            refused.code() == 403 && refused.text().contains("agents_api.enabled"),
            "{method} {path}: {}",
            refused.text()
        );
    }
}

#[tokio::test]
async fn agent_is_created_read_updated_and_deleted() {
    let gateway = Gateway::with_agents();
    assert_eq!(
        gateway.get("/api/features").await.json()["agents_api"],
        json!({ "enabled": true })
    );
    let draft = json!({ "name": "My-Agent", "description": "d", "tool_groups": ["file:read"], "soul": "You are X" });
    let made = gateway.post("/api/agents", draft.clone()).await;
    let expected = json!({ "name": "my-agent", "description": "d", "model": null, "tool_groups": ["file:read"], "skills": null,
        "model_settings": null, "thinking_enabled": null, "reasoning_effort": null, "soul": "You are X" });
    assert_eq!((made.code(), made.json()), (201, expected.clone()));
    let duplicate = gateway.post("/api/agents", draft).await;
    assert_eq!(
        (duplicate.code(), duplicate.json()),
        (409, json!({ "detail": "Agent 'my-agent' already exists" }))
    );
    let free = async |name: &str| {
        gateway
            .get(&format!("/api/agents/check?name={name}"))
            .await
            .json()
    };
    assert_eq!(
        free("My-Agent").await,
        json!({ "available": false, "name": "my-agent" })
    );
    assert_eq!(free("zz").await, json!({ "available": true, "name": "zz" }));
    assert_eq!(
        gateway.get("/api/agents").await.json(),
        json!({ "agents": [expected] })
    );

    let settings = json!({ "temperature": 0.5, "max_tokens": null });
    let change = json!({ "soul": "S2", "tool_groups": null, "skills": [], "model": "fake", "model_settings": settings });
    let changed = gateway
        .send("PUT", "/api/agents/my-agent", Some(change))
        .await;
    let expected = json!({ "name": "my-agent", "description": "d", "model": "fake", "tool_groups": null, "skills": [],
        "model_settings": settings, "thinking_enabled": null, "reasoning_effort": null, "soul": "S2" });
    assert_eq!((changed.code(), changed.json()), (200, expected.clone()));
    assert_eq!(gateway.get("/api/agents/MY-AGENT").await.json(), expected);

    let removed = gateway.send("DELETE", "/api/agents/my-agent", None).await;
    assert_eq!((removed.code(), removed.text()), (204, ""));
    for method in ["GET", "PUT", "DELETE"] {
        let gone = gateway
            .send(method, "/api/agents/my-agent", Some(json!({ "soul": "x" })))
            .await;
        assert_eq!(
            (gone.code(), gone.json()),
            (404, json!({ "detail": "Agent 'my-agent' not found" })),
            "{method}"
        );
    }
}

#[tokio::test]
async fn invalid_agent_is_rejected_without_side_effects() {
    let gateway = Gateway::with_agents();
    let long = "x".repeat(70_000);
    for body in [
        json!({}),
        json!({ "name": "bad name" }),
        json!({ "name": "check" }),
        json!({ "name": "../up" }),
        json!({ "name": 7 }),
        json!({ "name": "a", "soul": long }),
        json!({ "name": "a", "description": 1 }),
        json!({ "name": "a", "model": "none" }),
        json!({ "name": "a", "tool_groups": "web" }),
        json!({ "name": "a", "skills": [1] }),
        json!({ "name": "a", "skills": [long] }),
        json!({ "name": "a", "model_settings": { "temperature": 3 } }),
        json!({ "name": "a", "model_settings": { "max_tokens": 0 } }),
        json!({ "name": "a", "model_settings": { "top_p": 1 } }),
        json!({ "name": "a", "thinking_enabled": "yes" }),
        json!({ "name": "a", "reasoning_effort": "huge" }),
    ] {
        assert_eq!(
            gateway.post("/api/agents", body.clone()).await.code(),
            422,
            "{body}"
        );
    }
    let bad = gateway
        .post("/api/agents", json!({ "name": "bad name" }))
        .await;
    assert!(
        bad.text().contains("Invalid agent name 'bad name'."),
        "{}",
        bad.text()
    );
    assert_eq!(gateway.get("/api/agents/check?name=").await.code(), 422);
    assert_eq!(
        gateway.get("/api/agents").await.json(),
        json!({ "agents": [] })
    );
    assert_eq!(
        gateway
            .send("PUT", "/api/user-profile", Some(json!({ "content": long })))
            .await
            .code(),
        422
    );
}

#[tokio::test]
async fn agents_and_profile_are_private_to_their_user() {
    let gateway = Gateway::with_agents();
    let (ann, bob) = (
        User::new(&gateway, "ann").await,
        User::new(&gateway, "bob").await,
    );
    assert_eq!(
        ann.send(
            "POST",
            "/api/agents",
            json!({ "name": "scout", "soul": "secret" })
        )
        .await
        .code(),
        201
    );
    assert_eq!(
        ann.send("PUT", "/api/user-profile", json!({ "content": "I am Ann" }))
            .await
            .json(),
        json!({ "content": "I am Ann" })
    );
    for (method, path) in [
        ("GET", "/api/agents/scout"),
        ("PUT", "/api/agents/scout"),
        ("DELETE", "/api/agents/scout"),
    ] {
        let refused = bob.send(method, path, json!({ "soul": "mine" })).await;
        assert_eq!(
            (refused.code(), refused.json()),
            (404, json!({ "detail": "Agent 'scout' not found" }))
        );
    }
    assert_eq!(
        bob.send("GET", "/api/agents", Value::Null).await.json(),
        json!({ "agents": [] })
    );
    assert_eq!(
        bob.send("GET", "/api/agents/check?name=scout", Value::Null)
            .await
            .json()["available"],
        json!(true)
    );
    assert_eq!(
        bob.send("GET", "/api/user-profile", Value::Null)
            .await
            .json(),
        json!({ "content": null })
    );
    assert_eq!(
        ann.send("GET", "/api/agents/scout", Value::Null)
            .await
            .json()["soul"],
        json!("secret")
    );
}

#[tokio::test]
async fn concurrent_agent_updates_are_all_applied() {
    let gateway = Gateway::with_agents();
    gateway.post("/api/agents", json!({ "name": "both" })).await;
    let put = async |body: Value| {
        gateway
            .send("PUT", "/api/agents/both", Some(body))
            .await
            .code()
    };
    let bodies = [
        json!({ "soul": "s" }),
        json!({ "description": "d" }),
        json!({ "skills": ["k"] }),
        json!({ "thinking_enabled": false }),
    ];
    assert!(
        futures_util::future::join_all(bodies.map(put))
            .await
            .iter()
            .all(|code| *code == 200)
    );
    let both = gateway.get("/api/agents/both").await.json();
    assert_eq!(
        [
            &both["soul"],
            &both["description"],
            &both["skills"],
            &both["thinking_enabled"]
        ],
        [&json!("s"), &json!("d"), &json!(["k"]), &json!(false)]
    );
}

#[tokio::test]
async fn repeated_agent_deletion_clears_its_memory() {
    let gateway = Gateway::with_agents();
    let memories = &gateway.state.agent_services.user_memories;
    let scope = MemoryScope {
        user: "default".to_owned(),
        agent: Some("scout".to_owned()),
    };
    // The agent is removed, but its memory could not be reached.
    memories
        .add(&scope, "Likes tea", "preference", 0.9)
        .await
        .expect("a fact");
    assert_eq!(
        gateway
            .send("DELETE", "/api/agents/scout", None)
            .await
            .code(),
        404
    );
    assert!(
        memories
            .read(&scope)
            .await
            .expect("a memory")
            .document
            .facts
            .is_empty()
    );
    assert_eq!(
        gateway
            .send("DELETE", "/api/agents/never", None)
            .await
            .code(),
        404
    );
    assert_eq!(
        memories.agents("default").await,
        Ok(vec!["scout".to_owned()]),
        "an unknown agent has no effect"
    );
}
