//! Setup, registration, sign-in, change of the password and logout.

use std::time::Duration;

use deerflow_gateway::guard::auth::KeyRule;
use serde_json::{Value, json};

use super::browser::{Browser, PASSWORD};
use crate::support::Gateway;

#[tokio::test]
async fn first_administrator_closes_the_open_gateway() {
    let gateway = Gateway::new();
    let mut browser = Browser::new(&gateway);
    let status = browser.get("/api/v1/auth/setup-status").await;
    assert_eq!(
        status.json(),
        json!({ "needs_setup": true, "registration_enabled": true })
    );
    let me = browser.me().await.json();
    assert_eq!(
        (&me["id"], &me["system_role"]),
        (&json!("default"), &json!("admin"))
    );
    let created = browser.initialize("Root@Example.org").await;
    assert_eq!(created.code(), 201, "{}", created.text());
    let user = json!({
        "id": "default", "email": "root@example.org", "system_role": "admin",
        "needs_setup": false, "oauth_provider": null,
    });
    assert_eq!(created.json(), user);
    assert_eq!(created.header("cache-control"), "no-store");
    assert_eq!(browser.me().await.json(), user);
    assert_eq!(browser.cookies["csrf_token"].len(), 86);
    let again = browser.initialize("other@example.org").await;
    assert_eq!(
        (again.code(), &again.json()["detail"]["code"]),
        (409, &json!("system_already_initialized"))
    );
    let mut stranger = Browser::new(&gateway);
    let refused = stranger.me().await;
    let detail = &refused.json()["detail"];
    assert_eq!(
        (refused.code(), &detail["code"], &detail["message"]),
        (
            401,
            &json!("not_authenticated"),
            &json!("Authentication required")
        )
    );
    let status = stranger.get("/api/v1/auth/setup-status").await.json();
    assert_eq!(status["needs_setup"], false);
}

#[tokio::test]
async fn of_concurrent_setups_one_succeeds() {
    let gateway = Gateway::new();
    let setups = (0..20).map(async |n| {
        let mut browser = Browser::new(&gateway);
        browser
            .initialize(&format!("root{n}@example.org"))
            .await
            .code()
    });
    let mut codes = futures_util::future::join_all(setups).await;
    codes.sort_unstable();
    assert_eq!(codes[0], 201);
    assert!(codes[1..].iter().all(|code| *code == 409), "{codes:?}");
}

#[tokio::test]
async fn other_machines_set_up_only_while_it_is_open() {
    let gateway = Gateway::new().with_rule(KeyRule::Required);
    let mut remote = Browser::remote(&gateway);
    *gateway.accounts.rules.setup_time.lock() = Duration::ZERO;
    let refused = remote.initialize("root@example.org").await;
    assert_eq!(refused.code(), 403);
    assert!(
        refused.text().contains("deerflow users create --admin"),
        "{}",
        refused.text()
    );
    *gateway.accounts.rules.setup_time.lock() = Duration::from_secs(60);
    assert_eq!(remote.initialize("root@example.org").await.code(), 201);
    *gateway.accounts.rules.setup_time.lock() = Duration::ZERO;
    assert_eq!(remote.initialize("root2@example.org").await.code(), 409);
}

#[tokio::test]
async fn large_bodies_of_strangers_are_not_parsed() {
    let gateway = Gateway::new();
    for path in ["/api/v1/auth/register", "/api/v1/auth/initialize"] {
        let body = json!({ "email": vec![0; 40_000], "password": PASSWORD });
        let refused = Browser::new(&gateway).post(path, body).await;
        assert_eq!(refused.code(), 413, "{}", refused.text());
    }
}

#[tokio::test]
async fn violated_rules_are_value_errors() {
    let gateway = Gateway::new();
    let long = "x".repeat(257);
    for path in ["/api/v1/auth/register", "/api/v1/auth/initialize"] {
        for (email, password, field) in [
            ("no-address", PASSWORD, "email"),
            ("", PASSWORD, "email"),
            ("ann@example.org", "short", "password"),
            ("ann@example.org", "password", "password"),
            ("ann@example.org", "Ann@example.org", "password"),
            ("ann@example.org", &long, "password"),
        ] {
            let body = json!({ "email": email, "password": password });
            let refused = Browser::new(&gateway).post(path, body).await;
            let issue = &refused.json()["detail"][0];
            assert_eq!(
                (refused.code(), &issue["type"], &issue["loc"]),
                (422, &json!("value_error"), &json!(["body", field])),
                "{email} {password}"
            );
            assert!(!refused.text().contains(PASSWORD));
        }
        for body in [
            json!({}),
            json!({ "email": 5, "password": [] }),
            json!([]),
            Value::Null,
        ] {
            let refused = Browser::new(&gateway).post(path, body.clone()).await;
            assert_eq!(refused.code(), 422, "{body}");
        }
    }
}

#[tokio::test]
async fn registered_e_mail_cannot_register_again() {
    let gateway = Gateway::new();
    let mut ann = Browser::new(&gateway);
    let created = ann.register("ann@example.org").await;
    assert_eq!(created.code(), 201, "{}", created.text());
    assert_eq!(created.json()["system_role"], "user");
    let again = Browser::new(&gateway).register("ANN@example.org").await;
    assert_eq!(
        (again.code(), &again.json()["detail"]["code"]),
        (400, &json!("email_already_exists"))
    );
    let status = ann.get("/api/v1/auth/setup-status").await.json();
    assert_eq!(status["needs_setup"], true);
    *gateway.accounts.rules.registration.lock() = false;
    let refused = Browser::new(&gateway).register("bob@example.org").await;
    assert_eq!(refused.code(), 403);
    assert!(refused.json()["detail"].is_string());
    *gateway.accounts.rules.registration.lock() = true;
    *gateway.accounts.rules.per_hour.lock() = 1;
    let mut codes = Vec::new();
    for name in ["cid", "dan"] {
        let answer = Browser::new(&gateway)
            .register(&format!("{name}@example.org"))
            .await;
        codes.push((answer.code(), !answer.header("retry-after").is_empty()));
    }
    assert_eq!(codes[1], (429, true), "{codes:?}");
}

#[tokio::test]
async fn unknown_e_mail_and_wrong_password_are_refused_alike() {
    let gateway = Gateway::new();
    let mut ann = Browser::new(&gateway);
    ann.register("ann@example.org").await;
    let before = ann.cookies.clone();
    let wrong = ann.login("ann@example.org", "wrong").await;
    let unknown = Browser::new(&gateway)
        .login("bob@example.org", "wrong")
        .await;
    let detail = json!({ "detail": {
        "code": "invalid_credentials", "message": "Incorrect email or password",
    } });
    assert_eq!((wrong.code(), wrong.json()), (401, detail.clone()));
    assert_eq!((unknown.code(), unknown.json()), (401, detail));
    assert_eq!(ann.cookies, before);
    let entered = ann.login("ANN@example.org", PASSWORD).await;
    assert_eq!(
        entered.json(),
        json!({ "expires_in": 604_800, "needs_setup": false })
    );
    assert_ne!(ann.cookies["access_token"], before["access_token"]);
    let kind = [("content-type", "application/x-www-form-urlencoded")];
    let path = "/api/v1/auth/login/local";
    let empty = ann
        .raw("POST", path, &kind, "remember_me=true".to_owned())
        .await;
    assert_eq!(empty.code(), 422);
    let large = ann.raw("POST", path, &kind, "x".repeat(70_000)).await;
    assert_eq!(
        (large.code(), large.json()["detail"].is_string()),
        (413, true)
    );
}

#[tokio::test]
async fn guesses_are_limited_except_for_known_addresses() {
    let gateway = Gateway::new();
    Browser::new(&gateway).register("ann@example.org").await;
    let mut stranger = Browser::remote(&gateway);
    let mut codes = Vec::new();
    for _ in 0..6 {
        let answer = stranger.login("ann@example.org", "wrong").await;
        codes.push((answer.code(), !answer.header("retry-after").is_empty()));
    }
    assert_eq!(codes[..5], [(401, false); 5]);
    assert_eq!(codes[5], (429, true));
    let limited = stranger.login("ann@example.org", PASSWORD).await;
    assert!(limited.json()["detail"].is_string(), "{}", limited.text());
    let known = Browser::new(&gateway)
        .login("ann@example.org", PASSWORD)
        .await;
    assert_eq!(known.code(), 200);
}

#[tokio::test]
async fn changed_password_ends_all_other_sessions() {
    let gateway = Gateway::new();
    let mut ann = Browser::new(&gateway);
    ann.register("ann@example.org").await;
    Browser::new(&gateway).register("bob@example.org").await;
    let mut other = Browser::new(&gateway);
    other.login("ann@example.org", PASSWORD).await;
    let path = "/api/v1/auth/change-password";
    let change = |current: &str, new: &str, email: Option<&str>| json!({ "current_password": current, "new_password": new, "new_email": email });
    for (body, status, code) in [
        (
            change("wrong", "another brown deer", None),
            400,
            "invalid_credentials",
        ),
        (
            change(PASSWORD, "another brown deer", Some("Bob@example.org")),
            400,
            "email_already_exists",
        ),
    ] {
        let refused = ann.post(path, body).await;
        assert_eq!(
            (refused.code(), &refused.json()["detail"]["code"]),
            (status, &json!(code))
        );
    }
    let weak = ann.post(path, change(PASSWORD, "short", None)).await;
    assert_eq!(
        weak.json()["detail"][0]["loc"],
        json!(["body", "new_password"])
    );
    let changed = ann
        .post(
            path,
            change(PASSWORD, "another brown deer", Some("ann2@example.org")),
        )
        .await;
    assert_eq!(changed.code(), 200, "{}", changed.text());
    assert_eq!(ann.me().await.json()["email"], "ann2@example.org");
    assert_eq!(other.me().await.code(), 401);
    assert_eq!(
        other
            .login("ann2@example.org", "another brown deer")
            .await
            .code(),
        200
    );
    let mut stranger = Browser::new(&gateway);
    assert_eq!(
        stranger.post(path, change("a", "b", None)).await.code(),
        401
    );
}

#[tokio::test]
async fn logout_ends_the_session_on_the_server() {
    let gateway = Gateway::new();
    let mut ann = Browser::new(&gateway);
    ann.register("ann@example.org").await;
    let mut thief = Browser::new(&gateway);
    thief.cookies = ann.cookies.clone();
    assert_eq!(thief.me().await.code(), 200);
    let ended = ann.post("/api/v1/auth/logout", Value::Null).await;
    assert_eq!(
        (
            ended.code(),
            ended.headers.get_all("set-cookie").iter().count()
        ),
        (200, 3)
    );
    assert!(ann.cookies.is_empty());
    assert_eq!(thief.me().await.json()["detail"]["code"], "token_invalid");
    assert_eq!(
        ann.post("/api/v1/auth/logout", Value::Null).await.code(),
        200
    );
}

#[tokio::test]
async fn disabled_authentication_still_signs_people_in() {
    let gateway = Gateway::new().with_rule(KeyRule::Off);
    let mut ann = Browser::new(&gateway);
    assert_eq!(ann.register("ann@example.org").await.code(), 201);
    assert_eq!(ann.me().await.json()["email"], "ann@example.org");
    let mut stranger = Browser::new(&gateway);
    assert_eq!(stranger.me().await.json()["id"], "default");
    let body = json!({ "current_password": "a", "new_password": "b" });
    let refused = stranger.post("/api/v1/auth/change-password", body).await;
    assert_eq!(refused.code(), 400);
}
