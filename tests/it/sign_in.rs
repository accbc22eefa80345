//! Sign-in to the real gateway: setup, registration, separation of users, logout.

use deerflow_tests::gateway::GatewayProcess;
use serde_json::{Value, json};

use crate::rig::browser::Browser;
use crate::rig::{config, strict_model};

async fn start() -> GatewayProcess {
    let model = strict_model().await;
    GatewayProcess::start(&config(&model.base_url, ""), &[])
        .await
        .expect("gateway")
}

#[tokio::test]
async fn people_sign_in_to_a_fresh_gateway_and_stay_apart() {
    let gateway = start().await;
    let mut root = Browser::new(&gateway);
    let status = root.get("/api/v1/auth/setup-status").await.ok();
    assert_eq!(status["needs_setup"], true);
    // A thread of the time before sign-in belongs to the first administrator.
    let old = root.post("/api/threads", json!({})).await.ok();
    let created = root.sign_up("initialize", "root@example.org").await;
    assert_eq!(created.status, 201, "{}", created.text);
    let me = root.get("/api/v1/auth/me").await.ok();
    assert_eq!(
        (&me["email"], &me["system_role"]),
        (&json!("root@example.org"), &json!("admin"))
    );
    let mut ann = Browser::new(&gateway);
    assert_eq!(ann.sign_up("register", "ann@example.org").await.status, 201);
    let of_ann = ann.post("/api/threads", json!({})).await.ok();
    for (browser, own, foreign) in [(&mut root, &old, &of_ann), (&mut ann, &of_ann, &old)] {
        let path =
            |thread: &Value| format!("/api/threads/{}", thread["thread_id"].as_str().expect("id"));
        browser.get(&path(own)).await.ok();
        browser.get(&path(foreign)).await.refusal(404);
        let found = browser.post("/api/threads/search", json!({})).await.ok();
        assert_eq!(found.as_array().expect("a list").len(), 1, "{found}");
    }
    let mut copy = Browser::new(&gateway);
    copy.cookies = ann.cookies.clone();
    ann.post("/api/v1/auth/logout", json!({})).await.ok();
    for browser in [&mut ann, &mut copy] {
        browser.get("/api/threads/x").await.refusal(401);
    }
    let status = ann.get("/api/v1/auth/setup-status").await.ok();
    assert_eq!(status["needs_setup"], false);
}

#[tokio::test]
async fn of_50_concurrent_setups_one_makes_an_administrator() {
    let gateway = start().await;
    let setups = (0..50).map(async |n| {
        let mut browser = Browser::new(&gateway);
        let email = format!("root{n}@example.org");
        browser.sign_up("initialize", &email).await.status.as_u16()
    });
    let mut statuses = futures_util::future::join_all(setups).await;
    statuses.sort_unstable();
    assert_eq!(statuses[0], 201, "{statuses:?}");
    assert!(
        statuses[1..].iter().all(|status| *status == 409),
        "{statuses:?}"
    );
}
