//! Artifacts that users edit.

use serde_json::json;

use super::with_file;
use crate::support::{Gateway, saying};

#[tokio::test]
async fn edit_is_saved_if_the_file_is_unchanged() {
    let gateway = Gateway::new();
    let base = with_file(&gateway, "report.md", "# R\n").await;
    let file = format!("{base}/report.md");
    let seen = gateway
        .get(&file)
        .await
        .header("etag")
        .trim_matches('"')
        .to_owned();
    let save =
        |content: &str, expected: &str| json!({ "content": content, "expected_sha256": expected });
    let saved = gateway.send("PUT", &file, Some(save("# Ü\n", &seen))).await;
    let now = gateway.get(&file).await;
    assert_eq!(now.text(), "# Ü\n");
    let sha256 = now.header("etag").trim_matches('"');
    let expected =
        json!({ "path": "/mnt/user-data/outputs/report.md", "sha256": sha256, "size": 5 });
    assert_eq!((saved.code(), saved.json()), (200, expected));
    let stale = gateway
        .send("PUT", &file, Some(save("# other\n", &seen)))
        .await;
    assert_eq!(
        (stale.code(), stale.json()),
        (
            412,
            json!({ "detail": "Artifact changed since it was opened" })
        )
    );
    assert_eq!(gateway.get(&file).await.text(), "# Ü\n");
}

#[tokio::test]
async fn uneditable_file_reports_reason_and_stays_unchanged() {
    let gateway = Gateway::new();
    let base = with_file(&gateway, "blob.bin", vec![0xff, 0xfe]).await;
    let root = base.strip_suffix("/outputs").expect("a base").to_owned();
    let hash = "0".repeat(64);
    let edit = json!({ "content": "x", "expected_sha256": hash });
    let long = json!({ "content": "x".repeat(2 * 1024 * 1024 + 1), "expected_sha256": hash });
    for (path, body, code) in [
        (format!("{base}/blob.bin"), &edit, 415),
        (format!("{base}/a.skill/SKILL.md"), &edit, 415),
        (format!("{base}/blob.bin"), &long, 413),
        (format!("{base}/missing.txt"), &edit, 404),
        (base.clone(), &edit, 400),
        (format!("{root}/workspace/a.txt"), &edit, 400),
        (format!("{base}/%2e%2e/x"), &edit, 403),
        (format!("{base}/blob.bin"), &json!({ "content": "x" }), 422),
        (
            format!("{base}/blob.bin"),
            &json!({ "content": "x", "expected_sha256": "ABC" }),
            422,
        ),
        (
            format!("{base}/blob.bin"),
            &json!({ "content": 1, "expected_sha256": hash }),
            422,
        ),
    ] {
        let response = gateway.send("PUT", &path, Some(body.clone())).await;
        assert_eq!(response.code(), code, "{path}: {}", response.text());
    }
    assert_eq!(
        &gateway.get(&format!("{base}/blob.bin")).await.body[..],
        [0xff, 0xfe]
    );
}

#[tokio::test]
async fn edit_is_rejected_during_an_active_run() {
    let gateway = Gateway::new();
    let base = with_file(&gateway, "a.txt", "a").await;
    let thread = base.split('/').nth(3).expect("an id");
    gateway
        .post(&format!("/api/threads/{thread}/runs"), saying("slow"))
        .await;
    let edit = json!({ "content": "x", "expected_sha256": "0".repeat(64) });
    let response = gateway
        .send("PUT", &format!("{base}/a.txt"), Some(edit))
        .await;
    let detail = json!({ "detail": "Thread has a run in flight. Save after the run finishes." });
    assert_eq!((response.code(), response.json()), (409, detail));
}
