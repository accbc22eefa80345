//! Uploads: names, limits, and rejected requests without side effects.

use std::io::Read;
use std::sync::Arc;

use async_trait::async_trait;
use axum::body::Body;
use futures_util::{StreamExt, stream};
use harness::documents::{ConversionError, DocumentFuture, DocumentKind, DocumentReader};
use harness::ids::ThreadId;
use harness::runtime::actor_context::DEFAULT_USER_ID;
use harness::sandbox::{FileHome, VirtualPath, WriteMode};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::support::{Gateway, HttpResponse};

pub(crate) const BOUNDARY: (&str, &str) = ("content-type", "multipart/form-data; boundary=XX");

/// Returns a form with a part per (field, file name, content).
pub(crate) fn form(parts: &[(&str, &str, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (field, name, content) in parts {
        body.extend(format!("--XX\r\ncontent-disposition: form-data; name=\"{field}\"; filename=\"{name}\"\r\n\r\n").bytes());
        body.extend(*content);
        body.extend(b"\r\n");
    }
    body.extend(b"--XX--\r\n");
    body
}

async fn upload(gateway: &Gateway, thread: &str, parts: &[(&str, &str, &[u8])]) -> HttpResponse {
    gateway
        .raw(
            "POST",
            &format!("/api/threads/{thread}/uploads"),
            form(parts),
            &[BOUNDARY],
        )
        .await
}

async fn names(gateway: &Gateway, thread: &str) -> Vec<String> {
    let list = gateway
        .get(&format!("/api/threads/{thread}/uploads/list"))
        .await
        .json();
    let files = list["files"].as_array().expect("files");
    assert_eq!(list["count"], files.len());
    files
        .iter()
        .map(|file| file["filename"].as_str().expect("a name").to_owned())
        .collect()
}

#[tokio::test]
async fn file_uploaded_before_its_thread_is_an_artifact() {
    let gateway = Gateway::new();
    let thread = "b4d14c5e-8d7a-4d4e-9d0e-1a2b3c4d5e6f";
    let large = vec![b'x'; 300_000];
    let response = upload(
        &gateway,
        thread,
        &[
            ("files", "../a b.txt", b"first"),
            ("other", "no.txt", b"-"),
            ("files", "l.bin", &large),
        ],
    )
    .await;
    let body = response.json();
    assert_eq!(
        (response.code(), &body["success"], &body["message"]),
        (200, &json!(true), &json!("Successfully uploaded 2 file(s)"))
    );
    let expected = json!({
        "filename": "a b.txt", "size": 5,
        "path": "/mnt/user-data/uploads/a b.txt", "virtual_path": "/mnt/user-data/uploads/a b.txt",
        "artifact_url": format!("/api/threads/{thread}/artifacts/mnt/user-data/uploads/a%20b.txt"),
        "extension": null, "modified": null, "original_filename": null,
        "markdown_file": null, "markdown_path": null, "markdown_virtual_path": null, "markdown_artifact_url": null,
    });
    assert_eq!(body["files"][0], expected);
    assert_eq!(
        (&body["files"][1]["size"], &body["skipped_files"]),
        (&json!(300_000), &json!([]))
    );
    assert_eq!(names(&gateway, thread).await, ["a b.txt", "l.bin"]);
    let listed = gateway
        .get(&format!("/api/threads/{thread}/uploads/list"))
        .await
        .json()["files"][0]
        .clone();
    assert_eq!(
        (&listed["extension"], listed["modified"].is_f64()),
        (&json!(".txt"), true)
    );

    gateway
        .post("/api/threads", json!({ "thread_id": thread }))
        .await;
    assert_eq!(
        gateway
            .get(body["files"][0]["artifact_url"].as_str().expect("a url"))
            .await
            .text(),
        "first"
    );
    let replaced = upload(&gateway, thread, &[("files", "a b.txt", b"second")]).await;
    assert_eq!(replaced.json()["files"][0]["size"], 6);
    assert_eq!(names(&gateway, thread).await, ["a b.txt", "l.bin"]);
    let path = format!("/api/threads/{thread}/uploads/a%20b.txt");
    let deleted = gateway.send("DELETE", &path, None).await;
    assert_eq!(
        (deleted.code(), deleted.json()),
        (
            200,
            json!({ "success": true, "message": "Deleted a b.txt" })
        )
    );
    assert_eq!(gateway.send("DELETE", &path, None).await.code(), 404);
    assert_eq!(
        gateway
            .send(
                "DELETE",
                &format!("/api/threads/{thread}/uploads/%2e%2e"),
                None
            )
            .await
            .code(),
        400
    );
    assert_eq!(names(&gateway, thread).await, ["l.bin"]);
}

#[tokio::test]
async fn colliding_names_are_renamed_and_invalid_ones_reported() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let body = upload(
        &gateway,
        &thread,
        &[
            ("files", "a.txt", b"1"),
            ("files", "..", b"2"),
            ("files", "a.txt", b"3"),
        ],
    )
    .await
    .json();
    let names: Vec<&Value> = body["files"]
        .as_array()
        .expect("files")
        .iter()
        .map(|file| &file["filename"])
        .collect();
    assert_eq!(names, ["a.txt", "a_1.txt"]);
    assert_eq!(
        (
            &body["files"][1]["original_filename"],
            &body["skipped_files"]
        ),
        (&json!("a.txt"), &json!([".."]))
    );
    let none = upload(&gateway, &thread, &[("files", "..", b"2")])
        .await
        .json();
    assert_eq!(
        (&none["success"], &none["files"]),
        (&json!(false), &json!([]))
    );
}

#[tokio::test]
async fn request_beyond_a_limit_stores_nothing() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let many: Vec<String> = (0..11).map(|number| format!("{number}.txt")).collect();
    let many: Vec<(&str, &str, &[u8])> = many
        .iter()
        .map(|name| ("files", name.as_str(), &b"x"[..]))
        .collect();
    let large = vec![0; 52_428_801];
    let half = vec![0; 40_000_000];
    let refused = [
        (many, "Too many files: maximum is 10"),
        (
            vec![
                ("files", "a.txt", &b"x"[..]),
                ("files", "large.bin", &large[..]),
            ],
            "File too large: large.bin",
        ),
        (
            vec![
                ("files", "a", &half[..]),
                ("files", "b", &half[..]),
                ("files", "c", &half[..]),
            ],
            "Total upload size too large",
        ),
    ];
    for (parts, detail) in refused {
        let response = upload(&gateway, &thread, &parts).await;
        assert_eq!(
            (response.code(), response.json()),
            (413, json!({ "detail": detail }))
        );
        assert_eq!(names(&gateway, &thread).await, [""; 0]);
    }
    let empty = upload(&gateway, &thread, &[("files", "", b"")]).await;
    assert_eq!(
        (empty.code(), empty.json()),
        (400, json!({ "detail": "No files provided" }))
    );
    let path = format!("/api/threads/{thread}/uploads");
    for (body, kind) in [
        (form(&[("other", "a", b"x")]), BOUNDARY.1),
        (b"{}".to_vec(), "application/json"),
        (form(&[]), "multipart/form-data"),
    ] {
        let response = gateway
            .raw("POST", &path, body, &[("content-type", kind)])
            .await;
        assert_eq!(
            (response.code(), &response.json()["detail"][0]["loc"]),
            (422, &json!(["body", "files"])),
            "{}",
            response.text()
        );
    }
    let cut = form(&[("files", "a.txt", b"content")]);
    let cut = gateway
        .raw("POST", &path, cut[..cut.len() - 12].to_vec(), &[BOUNDARY])
        .await;
    assert_eq!(cut.code(), 400);
    assert_eq!(names(&gateway, &thread).await, [""; 0]);
}

#[tokio::test]
async fn form_overhead_is_limited_separately_from_files() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let path = format!("/api/threads/{thread}/uploads");
    let send = async |body: Vec<u8>| {
        let pieces: Vec<Result<Vec<u8>, std::io::Error>> = body
            .chunks(64 << 10)
            .map(|piece| Ok(piece.to_vec()))
            .collect();
        // One chunk at a time, as from a socket.
        let pieces = stream::iter(pieces).then(async |piece| {
            tokio::task::yield_now().await;
            piece
        });
        gateway
            .raw("POST", &path, Body::from_stream(pieces), &[BOUNDARY])
            .await
    };
    let long = vec![b'a'; 6 << 20];
    let mut around = b"--XX\r\nx-y: ".to_vec();
    around.extend(&long);
    around.extend(&form(&[("files", "a.txt", b"x")])[2..]);
    let before = [&long[..], b"\r\n", &form(&[("files", "a.txt", b"x")])].concat();
    for body in [around, before] {
        let response = send(body).await;
        let detail = "invalid form: more than 4194304 bytes belong to no part";
        assert_eq!(
            (response.code(), response.json()),
            (400, json!({ "detail": detail }))
        );
    }
    let response = send(form(&[
        ("other", "o", &long),
        ("files", "..", &long),
        ("files", "a.txt", &long),
    ]))
    .await
    .json();
    assert_eq!(
        (&response["files"][0]["size"], &response["skipped_files"]),
        (&json!(6 << 20), &json!([".."])),
        "{response}"
    );
}

/// A reader of documents that contain their own Markdown. It can write a file during the
/// conversion, like a concurrent user.
#[derive(Debug, Default)]
pub(crate) struct Plain {
    meanwhile: Mutex<Option<(FileHome, String, &'static str)>>,
}

#[async_trait]
impl DocumentReader for Plain {
    async fn markdown(
        &self,
        user: &str,
        _kind: DocumentKind,
        document: DocumentFuture<'_>,
    ) -> Result<String, ConversionError> {
        assert_eq!(user, DEFAULT_USER_ID);
        let mut text = String::new();
        document.await?.read_to_string(&mut text).expect("text");
        let meanwhile = self.meanwhile.lock().take();
        if let Some((home, thread, own)) = meanwhile {
            let files = home.thread(user, &ThreadId::parse(thread).expect("an id"));
            let path = VirtualPath::parse("/mnt/user-data/uploads/plan.md").expect("a path");
            files
                .write_text(&path, own.to_owned(), WriteMode::Replace)
                .await
                .expect("written");
        }
        if text.contains("locked") {
            Err(ConversionError::Document("it is locked".to_owned()))
        } else {
            Ok(text)
        }
    }
}

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

#[tokio::test]
async fn failed_file_stops_the_whole_upload() {
    let gateway = Gateway::new();
    let thread = gateway.thread().await;
    let id = ThreadId::parse(&*thread).expect("an id");
    let services = &gateway.state.thread_services;
    let files = services.files.thread(DEFAULT_USER_ID, &id);
    let at = |to: &str| VirtualPath::parse(&format!("/mnt/user-data/uploads/{to}")).expect("path");
    let first = files.begin_write(&at("a")).await.expect("begun");
    let second = files.begin_write(&at("b")).await.expect("begun");
    files
        .write_text(&at("b/c"), "x".to_owned(), WriteMode::Replace)
        .await
        .expect("a directory takes its name");
    assert!(first.settle().await.is_ok() && second.settle().await.is_err());
    assert_eq!(names(&gateway, &thread).await, [""; 0]);
}
