//! Markdown versions of uploaded documents.

use std::sync::Arc;

use harness::ids::ThreadId;
use harness::runtime::actor_context::DEFAULT_USER_ID;
use harness::sandbox::{VirtualPath, WriteMode};
use serde_json::{Value, json};

use super::{Plain, upload};
use crate::support::Gateway;

#[tokio::test]
async fn markdown_is_removed_with_its_document() {
    let reader = Arc::new(Plain::default());
    let gateway = Gateway::with_documents(reader);
    let thread = gateway.thread().await;
    let plan = async |content: &str| {
        let response = upload(
            &gateway,
            &thread,
            &[("files", "plan.pdf", content.as_bytes())],
        )
        .await
        .json();
        response["files"][0]["markdown_file"].clone()
    };
    let text = async || {
        gateway
            .get(&format!(
                "/api/threads/{thread}/artifacts/mnt/user-data/uploads/plan.md"
            ))
            .await
    };
    assert_eq!(plan("first").await, "plan.md");
    assert!(text().await.text().ends_with("first"));
    assert_eq!(plan("second, locked").await, Value::Null);
    assert_eq!(
        text().await.code(),
        404,
        "the Markdown of the first does not affect the second"
    );
    assert_eq!(plan("third").await, "plan.md");
    assert!(text().await.text().ends_with("third"));

    // A gateway without a document reader.
    let plain = Gateway::new();
    let thread = plain.thread().await;
    let path = VirtualPath::parse("/mnt/user-data/uploads/plan.md").expect("a path");
    let services = &plain.state.thread_services;
    let id = ThreadId::parse(&*thread).expect("an id");
    let files = services.files.thread(DEFAULT_USER_ID, &id);
    for (there, left) in [
        (harness::documents::mark_of("plan.pdf"), false),
        ("my own".to_owned(), true),
    ] {
        files
            .write_text(&path, there.clone(), WriteMode::Replace)
            .await
            .expect("written");
        upload(&plain, &thread, &[("files", "plan.pdf", b"another")]).await;
        assert_eq!(files.exists(&path).await.expect("a look"), left, "{there}");
    }
}

#[tokio::test]
async fn concurrent_user_file_is_not_overwritten_by_markdown() {
    let reader = Arc::new(Plain::default());
    let gateway = Gateway::with_documents(reader.clone());
    let thread = gateway.thread().await;
    *reader.meanwhile.lock() = Some((gateway.files.home.clone(), thread.clone(), "my own"));
    let response = upload(&gateway, &thread, &[("files", "plan.pdf", b"made")])
        .await
        .json();
    assert_eq!(
        (
            response["success"].clone(),
            &response["files"][0]["markdown_file"]
        ),
        (json!(true), &json!("plan.pdf.md"))
    );
    assert_eq!(
        gateway
            .get(&format!(
                "/api/threads/{thread}/artifacts/mnt/user-data/uploads/plan.md"
            ))
            .await
            .text(),
        "my own"
    );
}
