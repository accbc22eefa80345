//! Accounts of all people, managed by administrators.

use deerflow_domain::accounts::{AccountQuery, Role};
use serde_json::{Value, json};

use super::browser::{Browser, PASSWORD};
use crate::support::{Gateway, HttpResponse};

const USERS: &str = "/api/v1/admin/users";
const AUDIT: &str = "/api/v1/admin/audit";

async fn root(gateway: &Gateway) -> Browser<'_> {
    let mut root = Browser::new(gateway);
    let created = root.initialize("root@example.org").await;
    assert_eq!(created.code(), 201, "{}", created.text());
    root
}

async fn id_of(browser: &mut Browser<'_>) -> String {
    browser.me().await.json()["id"]
        .as_str()
        .expect("an id")
        .to_owned()
}

async fn patch(root: &mut Browser<'_>, id: &str, change: Value) -> HttpResponse {
    root.send("PATCH", &format!("{USERS}/{id}"), change).await
}

#[tokio::test]
async fn others_than_administrators_are_refused() {
    let gateway = Gateway::new();
    let mut root = root(&gateway).await;
    let mut ann = Browser::new(&gateway);
    ann.register("ann@example.org").await;
    let mut anonymous = Browser::new(&gateway);
    let user = format!("{USERS}/default");
    for (method, path) in [
        ("GET", USERS),
        ("POST", USERS),
        ("PATCH", &*user),
        ("DELETE", &*user),
        ("GET", AUDIT),
    ] {
        let body = json!({ "email": "x@example.org", "role": "admin", "disabled": true });
        let refused = ann.send(method, path, body.clone()).await;
        assert_eq!(refused.code(), 403, "{method} {path}");
        assert!(!refused.text().contains("root@"), "{}", refused.text());
        assert_eq!(anonymous.send(method, path, body).await.code(), 401);
    }
    let listed = root.get(USERS).await.json();
    assert_eq!(listed["total"], 2, "{listed}");
}

#[tokio::test]
async fn administrator_creates_lists_and_changes_users() {
    let gateway = Gateway::new();
    let mut root = root(&gateway).await;
    let created = root
        .post(USERS, json!({ "email": "Ann@example.org", "role": "user" }))
        .await;
    assert_eq!(created.code(), 201, "{}", created.text());
    assert_eq!(created.headers["cache-control"], "no-store");
    let created = created.json();
    assert_eq!(
        (&created["email"], &created["role"], &created["needs_setup"]),
        (&json!("ann@example.org"), &json!("user"), &json!(true))
    );
    let password = created["password"].as_str().expect("shown once");
    let mut ann = Browser::new(&gateway);
    assert_eq!(ann.login("ann@example.org", password).await.code(), 200);
    let id = id_of(&mut ann).await;
    let chosen = json!({ "email": "bob@example.org", "role": "admin", "password": PASSWORD });
    let bob = root.post(USERS, chosen.clone()).await.json();
    assert!(bob.get("password").is_none() && bob["needs_setup"] == false);
    assert_eq!(root.post(USERS, chosen).await.code(), 409);
    let page = root.get(&format!("{USERS}?q=ANN&limit=1")).await.json();
    assert_eq!(page["users"][0]["id"], created["id"]);
    assert_eq!(page["total"], 1);
    let page = root.get(&format!("{USERS}?limit=1&offset=2")).await.json();
    assert_eq!(page["users"][0]["email"], "bob@example.org");
    assert_eq!(page["total"], 3);
    for page in [&page, &root.get(USERS).await.json()] {
        assert!(!page.to_string().contains("argon2"), "{page}");
    }
    // The session that she has acts with the new role at once.
    assert_eq!(ann.get(USERS).await.code(), 403);
    let promoted = patch(&mut root, &id, json!({ "role": "admin" })).await;
    assert_eq!(promoted.json()["role"], "admin");
    assert_eq!(ann.get(USERS).await.code(), 200);
    let disabled = patch(&mut root, &id, json!({ "disabled": true })).await;
    assert_eq!(disabled.json()["disabled"], true);
    assert_eq!(ann.me().await.code(), 401);
    assert_eq!(ann.login("ann@example.org", password).await.code(), 403);
}

#[tokio::test]
async fn wrong_requests_about_users_are_refused() {
    let gateway = Gateway::new();
    let mut root = root(&gateway).await;
    for body in [
        json!({ "email": "x", "role": "user" }),
        json!({ "email": "x@example.org", "role": "owner" }),
        json!({ "email": "x@example.org", "password": "short" }),
        json!({ "email": 1 }),
        json!({}),
    ] {
        let refused = root.post(USERS, body.clone()).await;
        assert_eq!(refused.code(), 422, "{body} {}", refused.text());
    }
    for query in ["limit=0", "limit=x", "offset=-1", "limit=100000"] {
        assert_eq!(root.get(&format!("{USERS}?{query}")).await.code(), 422);
    }
    for id in ["absent", "%00", "..%2f", &"x".repeat(5_000)] {
        assert_eq!(patch(&mut root, id, json!({})).await.code(), 404, "{id}");
        let deleted = root
            .send("DELETE", &format!("{USERS}/{id}"), Value::Null)
            .await;
        assert_eq!(deleted.code(), 404, "{id}");
    }
    let wrong = patch(&mut root, "default", json!({ "role": "owner" })).await;
    assert_eq!(wrong.code(), 422);
    for query in ["action=nothing", "before=x", "limit=0"] {
        assert_eq!(root.get(&format!("{AUDIT}?{query}")).await.code(), 422);
    }
}

#[tokio::test]
async fn last_administrator_stays() {
    let gateway = Gateway::new();
    let mut root = root(&gateway).await;
    for change in [json!({ "role": "user" }), json!({ "disabled": true })] {
        let refused = patch(&mut root, "default", change).await;
        assert_eq!(refused.code(), 409, "{}", refused.text());
    }
    let deleted = root
        .send("DELETE", &format!("{USERS}/default"), Value::Null)
        .await;
    assert_eq!(deleted.code(), 409, "{}", deleted.text());
    assert_eq!(id_of(&mut root).await, "default");
}

#[tokio::test]
async fn deleted_user_is_gone_and_recorded() {
    let gateway = Gateway::new();
    let mut root = root(&gateway).await;
    let mut ann = Browser::new(&gateway);
    ann.register("ann@example.org").await;
    let id = id_of(&mut ann).await;
    let path = format!("{USERS}/{id}");
    let deleted = root.send("DELETE", &path, Value::Null).await;
    assert_eq!(deleted.code(), 200, "{}", deleted.text());
    assert_eq!(deleted.json()["id"], json!(id));
    assert_eq!(ann.me().await.code(), 401);
    assert_eq!(ann.login("ann@example.org", PASSWORD).await.code(), 401);
    assert_eq!(root.send("DELETE", &path, Value::Null).await.code(), 404);
    let audit = root.get(&format!("{AUDIT}?user={id}")).await.json();
    let actions: Vec<&str> = audit["entries"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|entry| entry["action"].as_str().expect("a name"))
        .collect();
    assert_eq!(
        actions[..2],
        ["account.deleted", "account.disabled"],
        "{audit}"
    );
    assert_eq!(audit["entries"][0]["actor"], "default");
    assert_eq!(audit["entries"][0]["address"], "127.0.0.1");
    assert!(!audit.to_string().contains(PASSWORD));
}

#[tokio::test]
async fn audit_is_read_in_pages() {
    let gateway = Gateway::new();
    let mut root = root(&gateway).await;
    for n in 0..3 {
        let body = json!({ "email": format!("u{n}@example.org"), "password": PASSWORD });
        assert_eq!(root.post(USERS, body).await.code(), 201);
    }
    let mut path = format!("{AUDIT}?action=account.created&limit=2");
    let first = root.get(&path).await.json();
    assert_eq!(first["entries"].as_array().map(Vec::len), Some(2));
    path += &format!("&before={}", first["next_before"]);
    let second = root.get(&path).await.json();
    assert_eq!(second["entries"].as_array().map(Vec::len), Some(2));
    path += &format!("&before={}", second["next_before"]);
    let third = root.get(&path).await.json();
    assert_eq!(third, json!({ "entries": [], "next_before": null }));
}

#[tokio::test]
async fn administrators_demoting_each_other_leave_one() {
    let gateway = Gateway::new();
    let mut root = root(&gateway).await;
    let body = json!({ "email": "bob@example.org", "role": "admin", "password": PASSWORD });
    let bob_id = root.post(USERS, body).await.json()["id"].clone();
    let bob_id = bob_id.as_str().expect("an id").to_owned();
    let mut bob = Browser::new(&gateway);
    assert_eq!(bob.login("bob@example.org", PASSWORD).await.code(), 200);
    let demotion = json!({ "role": "user" });
    let (one, other) = tokio::join!(
        patch(&mut root, &bob_id, demotion.clone()),
        patch(&mut bob, "default", demotion)
    );
    let codes = [one.code(), other.code()];
    assert_eq!(
        codes.iter().filter(|code| **code == 200).count(),
        1,
        "{codes:?}"
    );
    let accounts = &gateway.accounts.stores.accounts;
    let query = AccountQuery {
        limit: 9,
        ..AccountQuery::default()
    };
    let all = accounts.list(&query).await.expect("read").accounts;
    let admins = all.iter().filter(|account| account.role == Role::Admin);
    assert_eq!(admins.count(), 1);
}
