//! Flows of two users.

use serde_json::{Value, json};

use crate::keys::User;
use crate::support::{FLOW, Gateway};

#[tokio::test]
async fn flow_of_another_user_does_not_exist() {
    let gateway = Gateway::new();
    let (ann, bob) = (
        User::new(&gateway, "ann").await,
        User::new(&gateway, "bob").await,
    );
    let flow = || json!({"id": "f", "content": FLOW});
    assert_eq!(ann.send("POST", "/api/flows", flow()).await.code(), 201);
    for (method, path) in [
        ("GET", "/api/flows/f"),
        ("PUT", "/api/flows/f"),
        ("DELETE", "/api/flows/f"),
        ("GET", "/flows/f/versions"),
        ("GET", "/flows/f/graph"),
        ("GET", "/flows/f/export"),
        ("POST", "/flows/f/versions/1/restore"),
        ("GET", "/flows/assets?flowId=f"),
    ] {
        let body = if method == "PUT" { flow() } else { Value::Null };
        let hidden = bob.send(method, path, body).await;
        assert_eq!(hidden.code(), 404, "{method} {path}: {}", hidden.text());
    }
    let list = bob.send("GET", "/api/flows", Value::Null).await.json();
    assert_eq!(list.as_array().unwrap().len(), 1, "the system flow only");
    assert_eq!(bob.send("POST", "/api/flows", flow()).await.code(), 201);
    assert_eq!(
        bob.send("DELETE", "/api/flows/f", Value::Null).await.code(),
        204
    );
    assert_eq!(
        ann.send("GET", "/api/flows/f", Value::Null).await.code(),
        200
    );
}

#[tokio::test]
async fn user_without_rights_cannot_reload_system_flows() {
    let gateway = Gateway::new();
    let ann = User::new(&gateway, "ann").await;
    let refused = ann
        .send("POST", "/api/flows/assets/reload", Value::Null)
        .await;
    assert_eq!(refused.code(), 403);
}
