//! Names, limits and failures of uploaded files.

use axum::body::Body;
use futures_util::{StreamExt, stream};
use harness::ids::ThreadId;
use harness::runtime::actor_context::DEFAULT_USER_ID;
use harness::sandbox::{VirtualPath, WriteMode};
use serde_json::{Value, json};

use super::{BOUNDARY, form, names, upload};
use crate::keys::User;
use crate::support::Gateway;

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

    let url = body["files"][0]["artifact_url"].as_str().expect("a url");
    assert_eq!(gateway.get(url).await.text(), "first");
    let other = User::new(&gateway, "bob").await;
    let foreign = other.send("GET", url, Value::Null).await;
    assert_eq!(foreign.code(), 404);
    let output = url.replace("uploads", "outputs");
    assert_eq!(gateway.get(&output).await.code(), 404);
    gateway
        .post("/api/threads", json!({ "thread_id": thread }))
        .await;
    assert_eq!(gateway.get(url).await.text(), "first");
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
        let detail = "invalid form: more than 131072 bytes belong to no part";
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
