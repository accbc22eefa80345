//! API keys that people make.

use deerflow_domain::accounts::{AuditAction, AuditQuery};
use serde_json::{Value, json};

use super::browser::Browser;
use crate::support::Gateway;

const KEYS: &str = "/api/v1/auth/keys";

#[tokio::test]
async fn key_acts_for_its_user_until_it_is_revoked() {
    let gateway = Gateway::new();
    let mut ann = Browser::new(&gateway);
    ann.register("ann@example.org").await;
    let made = ann
        .post(KEYS, json!({ "name": "script", "expires_in_days": 7 }))
        .await;
    assert_eq!(made.code(), 201, "{}", made.text());
    let made = made.json();
    let key = made["key"].as_str().expect("shown once").to_owned();
    let listed = ann.get(KEYS).await.json();
    assert_eq!(listed["keys"][0]["id"], made["id"]);
    assert!(!listed.to_string().contains(&key));
    let with_key = [("x-api-key", &*key)];
    let me = gateway
        .raw("GET", "/api/v1/auth/me", "", &with_key)
        .await
        .json();
    assert_eq!(
        (&me["email"], &me["system_role"]),
        (&json!("ann@example.org"), &json!("user"))
    );
    for (method, path) in [
        ("POST", KEYS),
        ("GET", KEYS),
        ("GET", "/api/v1/auth/sessions"),
    ] {
        let refused = gateway
            .raw(method, path, r#"{"name":"x"}"#, &with_key)
            .await;
        assert_eq!(refused.code(), 403, "{method} {path}");
    }
    assert_eq!(
        gateway
            .raw("POST", "/threads", "{}", &with_key)
            .await
            .code(),
        200
    );
    let one = format!("{KEYS}/{}", made["id"].as_str().expect("an id"));
    let mut bob = Browser::new(&gateway);
    bob.register("bob@example.org").await;
    assert_eq!(bob.send("DELETE", &one, Value::Null).await.code(), 404);
    assert_eq!(ann.send("DELETE", &one, Value::Null).await.code(), 204);
    assert_eq!(ann.send("DELETE", &one, Value::Null).await.code(), 404);
    assert_eq!(
        gateway
            .raw("POST", "/threads", "{}", &with_key)
            .await
            .code(),
        401
    );
    let query = AuditQuery {
        limit: 10,
        ..AuditQuery::default()
    };
    let audit = gateway
        .accounts
        .stores
        .audit
        .list(&query)
        .await
        .expect("a log");
    let actions: Vec<AuditAction> = audit.iter().map(|entry| entry.entry.action).collect();
    for action in [AuditAction::KeyCreated, AuditAction::KeyRevoked] {
        assert!(actions.contains(&action), "{actions:?}");
    }
}

#[tokio::test]
async fn names_and_lifetimes_of_keys_are_checked() {
    let gateway = Gateway::new();
    let mut ann = Browser::new(&gateway);
    ann.register("ann@example.org").await;
    let long = "n".repeat(101);
    for body in [
        json!({}),
        json!({ "name": "" }),
        json!({ "name": " " }),
        json!({ "name": long }),
        json!({ "name": "x", "expires_in_days": 0 }),
        json!({ "name": "x", "expires_in_days": 366 }),
        json!({ "name": "x", "expires_in_days": "1" }),
    ] {
        assert_eq!(ann.post(KEYS, body.clone()).await.code(), 422, "{body}");
    }
    for n in 0..50 {
        assert_eq!(
            ann.post(KEYS, json!({ "name": format!("k{n}") }))
                .await
                .code(),
            201
        );
    }
    assert_eq!(
        ann.post(KEYS, json!({ "name": "one more" })).await.code(),
        409
    );
}
