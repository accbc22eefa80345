//! Sign-in through proxies, and pages of other parties.

use deerflow_gateway::guard::auth::KeyRule;
use serde_json::json;

use super::browser::{Browser, PASSWORD};
use crate::support::Gateway;

fn headers(pairs: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    pairs
        .iter()
        .map(|(name, value)| (*name, (*value).to_owned()))
        .collect()
}

#[tokio::test]
async fn pages_sign_in_through_usual_proxies() {
    for (what, rule, peer, given) in [
        (
            "port forward",
            KeyRule::Optional,
            "127.0.0.1",
            &[
                ("host", "localhost:9000"),
                ("origin", "http://localhost:9000"),
            ][..],
        ),
        (
            "LAN name",
            KeyRule::Required,
            "192.168.1.7",
            &[
                ("host", "deer.lan:8001"),
                ("origin", "http://deer.lan:8001"),
            ],
        ),
        (
            "rewrites of Next",
            KeyRule::Optional,
            "127.0.0.1",
            &[
                ("host", "127.0.0.1:8001"),
                ("origin", "http://192.168.1.5:3000"),
                ("x-forwarded-host", "192.168.1.5:3000"),
            ],
        ),
        (
            "nginx",
            KeyRule::Required,
            "172.18.0.4",
            &[
                ("host", "box"),
                ("origin", "http://box:2026"),
                ("x-real-ip", "172.18.0.1"),
                ("x-forwarded-proto", "http"),
            ],
        ),
        (
            "nginx behind a TLS proxy",
            KeyRule::Optional,
            "127.0.0.1",
            &[
                ("host", "deer.example.com"),
                ("origin", "https://deer.example.com"),
                ("x-real-ip", "172.18.0.1"),
                ("x-forwarded-proto", "https"),
            ],
        ),
    ] {
        let gateway = Gateway::new().with_rule(rule);
        let mut browser = Browser::new(&gateway);
        browser.peer = peer;
        browser.headers = headers(given);
        let status = browser.get("/api/v1/auth/setup-status").await;
        assert_eq!(status.code(), 200, "{what}: {}", status.text());
        let created = browser.initialize("root@example.org").await;
        assert_eq!(created.code(), 201, "{what}: {}", created.text());
        assert_eq!(
            browser.post("/api/threads", json!({})).await.code(),
            200,
            "{what}"
        );
        let secure = created.header("set-cookie").contains("Secure");
        assert_eq!(secure, what.contains("TLS"), "{what}");
        browser.cookies.clear();
        assert_eq!(
            browser.login("root@example.org", PASSWORD).await.code(),
            200,
            "{what}"
        );
    }
}

#[tokio::test]
async fn pages_of_other_parties_do_not_sign_in() {
    let gateway = Gateway::new();
    for given in [
        &[
            ("host", "localhost:8001"),
            ("origin", "http://localhost:3000"),
        ][..],
        &[("host", "localhost:8001"), ("origin", "null")],
        &[("host", "deer.lan"), ("origin", "http://evil-deer.lan")],
        &[
            ("host", "evil.example.com"),
            ("origin", "http://evil.example.com"),
        ],
        &[
            ("host", "127.0.0.1:8001"),
            ("origin", "http://evil.example.com"),
            ("x-forwarded-host", "evil.example.com"),
        ],
        &[("host", "localhost:8001"), ("sec-fetch-site", "cross-site")],
    ] {
        let mut browser = Browser::new(&gateway);
        browser.headers = headers(given);
        let refused = browser.initialize("root@example.org").await;
        assert_eq!(refused.code(), 403, "{given:?}: {}", refused.text());
        assert!(refused.json()["detail"].is_string());
    }
}

#[tokio::test]
async fn altered_public_paths_do_not_open_protected_ones() {
    let gateway = Gateway::new().with_rule(KeyRule::Required);
    for path in [
        "//api/v1/auth/setup-status",
        "/api//v1/auth/setup-status",
        "/api/v1/auth/setup-status%2f..%2fme",
        "/api/v1/auth/setup-status/../me",
        "/api/v1/auth/oauth/../me",
        "/api/v1/auth/callback/..%2fme",
        "/health/../api/threads",
        "/ok%2f..%2fmetrics",
        "/api/v1/auth/%6de",
    ] {
        let mut browser = Browser::remote(&gateway);
        let code = browser.get(path).await.code();
        assert!(matches!(code, 401 | 404), "{path}: {code}");
    }
}
