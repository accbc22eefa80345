//! Bodies that are no flows.

use std::time::{Duration, Instant};

use super::{YAML, codes, send};
use crate::support::{FLOW, Gateway};

/// Texts that a validation could take long for, or fail on.
fn hostile_texts() -> Vec<(&'static str, String)> {
    let aliases: String = (0..30)
        .map(|n| {
            format!(
                "a{}: &a{} [{}]\n",
                n + 1,
                n + 1,
                format!("*a{n},").repeat(9)
            )
        })
        .collect();
    let nodes: String = (0..501)
        .map(|n| format!("{{nodeId: n{n}, nodeKind: agent.main, agentId: a}},"))
        .collect();
    vec![
        ("empty", String::new()),
        ("scalar", "hello".to_owned()),
        ("list", "[1, 2]".to_owned()),
        ("null", "null".to_owned()),
        ("half", FLOW[..FLOW.len() / 2].to_owned()),
        ("depth", "[".repeat(100_000)),
        ("json depth", "{\"a\":".repeat(50_000)),
        ("alias bomb", format!("a0: &a0 [x]\n{aliases}")),
        (
            "nodes",
            FLOW.replace(
                "[{nodeId: greet, nodeKind: agent.main, agentId: a}]",
                &format!("[{nodes}]"),
            ),
        ),
        ("odd id", FLOW.replace("greet", "__start__")),
        (
            "self edge",
            FLOW.replace("edges: []", "edges: [{source: greet, target: greet}]"),
        ),
        ("control", FLOW.replace("Hello", "\u{0}\u{7}")),
        ("duplicate keys", format!("{FLOW}meta: {{}}\n")),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_text_is_refused_in_time() {
    let gateway = Gateway::new();
    for (what, text) in hostile_texts() {
        let begin = Instant::now();
        let refused = send(&gateway, "POST", "/api/flows?id=f", &text).await;
        let took = begin.elapsed();
        assert_eq!(refused.code(), 422, "{what}: {}", refused.text());
        assert!(!codes(&refused).is_empty(), "{what}: {}", refused.text());
        // The limit is 100 ms for optimized code.
        assert!(took < Duration::from_secs(2), "{what} took {took:?}");
        let checked = send(&gateway, "POST", "/api/flows/validate", &text).await;
        assert_eq!(
            (checked.code(), &checked.json()["valid"]),
            (200, &false.into()),
            "{what}"
        );
    }
    assert_eq!(gateway.get("/api/flows/f").await.code(), 404);
}

#[tokio::test]
async fn large_body_is_refused_with_413() {
    let gateway = Gateway::new();
    for size in [(1 << 20) + 1, 8 << 20] {
        let text = format!("# {}\n{FLOW}", "x".repeat(size));
        for path in ["/api/flows", "/flows/validate"] {
            assert_eq!(
                send(&gateway, "POST", path, &text).await.code(),
                413,
                "{path} {size}"
            );
        }
    }
}

#[tokio::test]
async fn other_media_types_are_refused_with_415() {
    let gateway = Gateway::new();
    for kind in [
        "image/png",
        "multipart/form-data; boundary=x",
        "application/xml",
    ] {
        let headers = [("content-type", kind)];
        for path in ["/api/flows", "/flows/validate", "/flows/import"] {
            let refused = gateway.raw("POST", path, FLOW, &headers).await;
            assert_eq!(refused.code(), 415, "{path} {kind}");
        }
    }
}

#[tokio::test]
async fn body_that_is_not_utf_8_is_refused() {
    let gateway = Gateway::new();
    let refused = gateway
        .raw("POST", "/api/flows", vec![0xff, 0xfe], &[YAML])
        .await;
    assert_eq!(refused.code(), 422);
}
