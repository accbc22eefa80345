//! The OpenAPI documents and the router have the same routes, and the page shows them.

use std::collections::{BTreeMap, BTreeSet};

use crate::schema::Document;
use crate::support::Gateway;

/// Paths of the root's document and of the document of both dialects.
const OF_ROOT: &str = "/openapi.json";
const WHOLE: &str = "/api/openapi.json";

/// Returns the methods of each path of a document.
async fn described(gateway: &Gateway, document: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut paths: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for operation in Document(gateway.get(document).await.json()).operations() {
        paths
            .entry(operation.path)
            .or_default()
            .insert(operation.method);
    }
    paths
}

#[tokio::test]
async fn root_routes_equal_those_of_the_document() {
    let gateway = Gateway::new();
    // A router does not list its routes, but its debug output does.
    let printed = format!("{:?}", gateway.router);
    let mut routed: BTreeSet<&str> = printed
        .split('"')
        .filter(|part| part.starts_with('/') && !part.starts_with("/api"))
        .collect();
    routed.retain(|path| !path.starts_with("/{*__private"));
    let described = described(&gateway, OF_ROOT).await;
    assert_eq!(
        routed,
        described
            .keys()
            .map(String::as_str)
            .collect::<BTreeSet<_>>()
    );
}

#[tokio::test]
async fn combined_document_has_every_route_of_both_dialects() {
    let gateway = Gateway::new();
    let printed = format!("{:?}", gateway.router);
    let routed = printed
        .split('"')
        .filter(|part| part.starts_with('/') && !part.contains("{*__private"));
    let routed: BTreeSet<String> = routed.map(|path| path.replace("{*", "{")).collect();
    for path in [
        "/threads",
        "/api/threads",
        "/api/langgraph/threads",
        "/api/skills",
        "/api/threads/{thread_id}/artifacts/{path}",
    ] {
        assert!(routed.contains(path), "{path}");
    }
    assert_eq!(
        routed,
        described(&gateway, WHOLE).await.into_keys().collect()
    );
    assert_eq!(
        gateway.get("/api/langgraph/openapi.json").await.json(),
        gateway.get(WHOLE).await.json()
    );
    assert!(
        gateway
            .get("/docs")
            .await
            .text()
            .contains("fetch(\"api/openapi.json\")")
    );
}

#[tokio::test]
async fn paths_accept_exactly_the_documented_methods() {
    let gateway = Gateway::new();
    for (path, methods) in described(&gateway, WHOLE).await {
        let refused = gateway
            .send("TRACE", &path.replace(['{', '}'], ""), None)
            .await;
        assert_eq!(refused.code(), 405, "{path}");
        let allowed = refused
            .header("allow")
            .split(',')
            .map(|method| method.trim().to_owned())
            .filter(|method| method != "HEAD");
        assert_eq!(allowed.collect::<BTreeSet<_>>(), methods, "{path}");
    }
}

#[tokio::test]
async fn docs_page_policy_allows_its_script_and_this_server_only() {
    let gateway = Gateway::new();
    let page = gateway.get("/docs").await;
    assert_eq!(
        (page.code(), page.header("content-type")),
        (200, "text/html; charset=utf-8")
    );
    let policy = page.header("content-security-policy").to_owned();
    let nonce = policy
        .split("script-src 'nonce-")
        .nth(1)
        .and_then(|rest| rest.split('\'').next())
        .expect("a nonce")
        .to_owned();
    assert!(
        policy.starts_with("default-src 'none';")
            && policy.contains("connect-src 'self';")
            && !policy.contains("unsafe"),
        "{policy}"
    );
    assert_eq!(
        page.text().matches(&format!("nonce=\"{nonce}\"")).count(),
        2
    );
    assert!(!page.text().contains("{nonce}"));
    assert!(
        !gateway.get("/docs").await.text().contains(&nonce),
        "a nonce is used once"
    );
}

#[tokio::test]
async fn redoc_redirects_to_docs() {
    let redirect = Gateway::new().get("/redoc").await;
    assert_eq!(
        (redirect.code(), redirect.header("location")),
        (307, "/docs")
    );
}

#[tokio::test]
async fn disabled_docs_have_no_document_and_no_page() {
    let gateway = Gateway::with_docs(false);
    for path in [OF_ROOT, WHOLE, "/docs", "/redoc"] {
        let response = gateway.get(path).await;
        assert_eq!(
            (response.code(), response.json()),
            (404, serde_json::json!({ "detail": "Not Found" })),
            "{path}"
        );
    }
}
