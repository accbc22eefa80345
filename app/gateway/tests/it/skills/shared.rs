//! Skills that all users share, and the rights to manage them.

use deerflow_domain::api_keys::{Rights, issue};
use harness::clock::{Clock, SystemClock};
use harness::testkit::skill_archives::{compressed, skill_text};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use super::{install_own, names, put_file, with_public_skill};

#[tokio::test]
async fn shared_skills_need_an_administrator() {
    let gateway = with_public_skill();
    install_own(&gateway).await;
    let (_, key) = issue(
        &*gateway.keys,
        "bob",
        Rights::User,
        None,
        None,
        SystemClock.now(),
    )
    .await
    .expect("a key");
    let bob = async |method: &str, path: &str, body: Value| {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        gateway
            .raw(method, path, body, &[("x-api-key", key.expose_secret())])
            .await
    };
    let listed = bob("GET", "/api/skills", Value::Null).await.json();
    assert_eq!(
        (
            listed["skills"].as_array().map(Vec::len),
            &listed["skills"][0]["name"]
        ),
        (Some(1), &json!("web"))
    );
    assert_eq!(bob("GET", "/api/skills/own", Value::Null).await.code(), 404);
    put_file(
        &gateway,
        "bob",
        "/mnt/user-data/outputs/a.skill",
        compressed(&[("SKILL.md", skill_text("bobs").as_bytes())]),
    )
    .await;
    for (method, path, body) in [
        ("PUT", "/api/skills/web", json!({ "enabled": false })),
        (
            "POST",
            "/api/skills/install",
            json!({ "thread_id": "t1", "path": "/mnt/user-data/outputs/a.skill" }),
        ),
        ("POST", "/api/skills/reload", json!({})),
        ("GET", "/api/skills/custom", Value::Null),
        ("GET", "/api/skills/custom/own", Value::Null),
        ("PUT", "/api/skills/custom/own", json!({ "content": "x" })),
        ("DELETE", "/api/skills/custom/own", Value::Null),
        ("GET", "/api/skills/custom/own/history", Value::Null),
        ("POST", "/api/skills/custom/own/rollback", json!({})),
    ] {
        let refused = bob(method, path, body).await;
        assert_eq!(
            (refused.code(), refused.json()),
            (
                403,
                json!({ "detail": "Admin privileges required to manage skills." })
            ),
            "{path}"
        );
    }
    assert_eq!(names(&gateway).await, ["own", "web"]);
}

#[tokio::test]
async fn administrator_manages_shared_and_own_skills() {
    let gateway = with_public_skill();
    install_own(&gateway).await;
    let (_, key) = issue(
        &*gateway.keys,
        "ann",
        Rights::Admin,
        None,
        None,
        SystemClock.now(),
    )
    .await
    .expect("a key");
    let ann = async |method: &str, path: &str, body: Value| {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        gateway
            .raw(method, path, body, &[("x-api-key", key.expose_secret())])
            .await
    };
    assert_eq!(
        ann("PUT", "/api/skills/web", json!({ "enabled": false }))
            .await
            .code(),
        200
    );
    put_file(
        &gateway,
        "ann",
        "/mnt/user-data/outputs/a.skill",
        compressed(&[("SKILL.md", skill_text("anns").as_bytes())]),
    )
    .await;
    let request = json!({ "thread_id": "t1", "path": "/mnt/user-data/outputs/a.skill" });
    assert_eq!(
        ann("POST", "/api/skills/install", request).await.code(),
        200
    );
    assert_eq!(
        ann("GET", "/api/skills/custom/anns", Value::Null)
            .await
            .code(),
        200
    );
    assert_eq!(
        ann("GET", "/api/skills/custom/own", Value::Null)
            .await
            .code(),
        404,
        "another user's stays another user's"
    );
    assert_eq!(ann("GET", "/api/mcp/config", Value::Null).await.code(), 200);
    assert_eq!(names(&gateway).await, ["own", "web"]);
}
