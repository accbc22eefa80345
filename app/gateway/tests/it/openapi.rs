//! The document and the router have the same routes, and the page shows them.

use std::collections::{BTreeMap, BTreeSet};

use crate::schema::Document;
use crate::support::Gateway;

/// The document of the root, and that of both dialects.
const OF_ROOT: &str = "/openapi.json";
const WHOLE: &str = "/api/openapi.json";

/// The methods of each path of a document.
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
async fn every_route_of_the_root_is_in_the_document_and_the_other_way_round() {
    let gateway = Gateway::new();
    // A router does not list its routes; it prints them, though.
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
async fn the_whole_document_has_every_route_of_both_dialects() {
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
async fn every_path_takes_the_methods_that_the_document_says_and_no_others() {
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
async fn the_page_may_run_its_own_script_and_ask_this_server_only() {
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
async fn an_api_that_is_not_to_describe_itself_has_neither() {
    let gateway = Gateway::with_docs(false);
    for path in [OF_ROOT, WHOLE, "/docs"] {
        let answer = gateway.get(path).await;
        assert_eq!(
            (answer.code(), answer.json()),
            (404, serde_json::json!({ "detail": "Not Found" })),
            "{path}"
        );
    }
}
