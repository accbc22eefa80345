//! Bodies that are no flows.

use std::time::{Duration, Instant};

use deerflow_flow::testkit::{HostileDocument, hostile_documents};
use harness::testkit::skill_archives::compressed;
use serde_json::{Value, json};

use super::archives::import;
use super::{YAML, created, send};
use crate::support::{FLOW, Gateway, HttpResponse};

/// Longest time of a request. The limit is 100 ms for optimized code; this is for unoptimized code
/// on a busy machine.
const LONGEST: Duration = Duration::from_secs(10);

/// Checks a refusal: its status, and that each finding has a code, a message and a place.
fn require_refused(what: &str, refused: &HttpResponse) {
    if refused.code() == 413 {
        return;
    }
    assert_eq!(refused.code(), 422, "{what}: {:.400}", refused.text());
    let detail = refused.json()["detail"].clone();
    let findings = detail.as_array().cloned().unwrap_or_default();
    assert!(!findings.is_empty(), "{what}: {:.400}", refused.text());
    for finding in findings {
        let has = |key: &str| finding[key].as_str().is_some();
        assert!(
            has("code") && has("message") && has("path"),
            "{what}: {finding}"
        );
    }
}

async fn stored_flows(gateway: &Gateway) -> Vec<Value> {
    let list = gateway.get("/api/flows").await.json();
    let flows = list.as_array().cloned().unwrap_or_default();
    let hash = |flow: &Value| flow["contentHash"].clone();
    flows.iter().map(hash).collect()
}

/// Sends a document to all routes that read flows. Returns `true` if it is valid.
async fn send_everywhere(gateway: &Gateway, document: &HostileDocument) -> bool {
    let HostileDocument { name, bytes, .. } = document;
    let begin = Instant::now();
    let checked = gateway
        .raw("POST", "/api/flows/validate", bytes.clone(), &[YAML])
        .await;
    assert!(begin.elapsed() < LONGEST, "{name}: {:?}", begin.elapsed());
    let is_valid = checked.code() == 200 && checked.json()["valid"] == true;
    assert!(!(is_valid && document.is_invalid), "{name} is valid");
    if is_valid {
        return true;
    }
    if checked.code() != 200 {
        require_refused(name, &checked);
    }
    for (method, path) in [("POST", "/api/flows?id=f"), ("PUT", "/api/flows/say-hello")] {
        let refused = gateway.raw(method, path, bytes.clone(), &[YAML]).await;
        require_refused(name, &refused);
    }
    // Bytes that are not UTF-8 have no place in JSON.
    if let Ok(text) = std::str::from_utf8(bytes) {
        let wrapped = json!({ "content": text }).to_string();
        let kind = [("content-type", "application/json")];
        let refused = gateway.raw("POST", "/api/flows?id=f", wrapped, &kind).await;
        require_refused(name, &refused);
    }
    false
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_document_is_refused_and_stores_nothing() {
    let gateway = Gateway::new();
    created(&gateway).await;
    let before = stored_flows(&gateway).await;
    let mut refused = 0;
    for document in hostile_documents() {
        refused += usize::from(!send_everywhere(&gateway, &document).await);
    }
    assert!(refused > 1_000, "{refused}");
    assert_eq!(stored_flows(&gateway).await, before);
    assert_eq!(gateway.get("/api/flows/f").await.code(), 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn archive_with_a_hostile_document_stores_nothing() {
    let gateway = Gateway::new();
    for document in hostile_documents()
        .iter()
        .filter(|document| document.is_invalid)
    {
        // The keys make any text a flow.
        let marked = [b"meta:\ngraph:\n".as_slice(), &document.bytes].concat();
        for bytes in [&document.bytes, &marked] {
            let files = [
                ("good.yaml", FLOW.as_bytes()),
                ("bad.yaml", bytes.as_slice()),
            ];
            let answer = import(&gateway, "?replace=true", compressed(&files)).await;
            let is_no_flow = answer.code() == 201 && answer.json().as_array().unwrap().len() == 1;
            if !is_no_flow {
                assert!(
                    matches!(answer.code(), 413 | 422),
                    "{}: {} {:.400}",
                    document.name,
                    answer.code(),
                    answer.text()
                );
                assert_eq!(
                    gateway.get("/api/flows/good").await.code(),
                    404,
                    "{}",
                    document.name
                );
            }
            gateway.send("DELETE", "/api/flows/good", None).await;
        }
    }
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
        .raw(
            "POST",
            "/api/flows",
            b"meta:\n  name: \xff\n".to_vec(),
            &[YAML],
        )
        .await;
    require_refused("bytes", &refused);
    assert_eq!(refused.json()["detail"][0]["line"], 2);
}
