//! Tests of images: rejected files, the images that the model sees, and that no copy is stored.

use std::sync::Arc;

use bytes::Bytes;

use super::*;
use crate::agents::AgentBuilder;
use crate::agents::test_support::{ReplayModel, Reply, RunOutput, ask, calls};
use crate::ids::ThreadId;
use crate::sandbox::pending_file::Durability;
use crate::sandbox::{FileLimits, VirtualPath};
use crate::tools::builtins::ViewImage;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";

async fn home(named: &[(&str, &[u8])]) -> (tempfile::TempDir, FileHome) {
    let dir = tempfile::tempdir().unwrap();
    let home = FileHome::new(dir.path(), FileLimits::default());
    for (name, bytes) in named {
        write(&home, name, bytes).await;
    }
    (dir, home)
}

async fn write(home: &FileHome, name: &str, bytes: &[u8]) {
    let path = VirtualPath::parse(&format!("/mnt/user-data/uploads/{name}")).unwrap();
    let files = home.thread("ann", &ThreadId::parse("thread").unwrap());
    files
        .write_bytes(&path, Bytes::copy_from_slice(bytes), Durability::Cached)
        .await
        .unwrap();
}

fn view_image_reply(paths: &[&str]) -> Reply {
    let call = |path: &&str| {
        (
            "c",
            "view_image",
            json!({"image_path": format!("/mnt/user-data/uploads/{path}")}).to_string(),
        )
    };
    Reply::Call(
        paths
            .iter()
            .map(call)
            .zip(["a", "b"])
            .map(|((_, tool, args), id)| (id, tool, args))
            .collect(),
    )
}

async fn output(home: &FileHome, replies: Vec<Reply>) -> (RunOutput, Arc<ReplayModel>) {
    let model = ReplayModel::with_images(replies);
    let agent = AgentBuilder::new(model.clone())
        .tool(ViewImage { home: home.clone() })
        .middleware(ViewImageMiddleware::new(home.clone()))
        .build();
    (ask(&agent, "what is on it?").await, model)
}

#[tokio::test]
async fn images_are_in_one_request_and_never_in_thread() {
    let (_dir, home) = home(&[("a.png", PNG), ("b.GIF", b"GIF89a..")]).await;
    let replies = vec![
        view_image_reply(&["a.png", "b.GIF"]),
        calls([("t", "nothing", json!({}))]),
        Reply::Say("a cat"),
    ];
    let (output, model) = output(&home, replies).await;
    let requests = model.requests();
    let Content::Blocks(blocks) = &requests[1].messages.last().unwrap().content else {
        panic!("no pictures")
    };
    let urls: Vec<&str> = blocks
        .iter()
        .filter_map(|block| block["image_url"]["url"].as_str())
        .collect();
    assert_eq!(
        urls[0],
        format!("data:image/png;base64,{}", STANDARD.encode(PNG))
    );
    assert!(urls[1].starts_with("data:image/gif;base64,"));
    assert!(
        requests[2]
            .messages
            .iter()
            .all(|message| matches!(message.content, Content::Text(_)))
    );
    assert_eq!(
        output.state().channel("viewed_images").unwrap()["/mnt/user-data/uploads/a.png"]["mime_type"],
        "image/png"
    );
    for step in output.steps() {
        assert!(
            !serde_json::to_string(&*step.state)
                .unwrap()
                .contains("base64"),
            "{}",
            step.node
        );
    }
}

#[tokio::test]
async fn non_image_is_rejected_with_reason() {
    let (_dir, home) = home(&[("a.jpg", PNG), ("b.png", b"text"), ("c.svg", b"<svg/>")]).await;
    for (path, reason) in [
        ("a.jpg", "is image/png by its content, and not image/jpeg"),
        ("b.png", "is not an image by its content"),
        ("c.svg", "must end in jpg"),
        ("d.png", "no such file"),
        ("../../d.png", "Error"),
    ] {
        let (output, _) = output(&home, vec![view_image_reply(&[path]), Reply::Say("oh")]).await;
        let output = output.state().messages()[2].content.text();
        assert!(
            output.starts_with("Error") && output.contains(reason),
            "{path}: {output}"
        );
    }
}

#[tokio::test]
async fn changed_or_missing_image_becomes_note() {
    let (_dir, home) = home(&[("a.png", b"other")]).await;
    let files = home.thread("ann", &ThreadId::parse("thread").unwrap());
    for name in ["a.png", "b.png"] {
        let viewed = ViewedImage {
            path: format!("/mnt/user-data/uploads/{name}"),
            mime_type: "image/png".to_owned(),
            size: 9,
        };
        let [note] = &image_blocks(&viewed, &home, &files).await[..] else {
            panic!("a note alone")
        };
        assert_eq!(note["type"], "text", "{note}");
    }
}

#[tokio::test]
async fn request_limits_image_bytes() {
    let large = [PNG, &vec![0; 12 << 20][..]].concat();
    let (_dir, home) = home(&[("a.png", &large), ("b.png", &large)]).await;
    let (_, model) = output(
        &home,
        vec![view_image_reply(&["a.png", "b.png"]), Reply::Say("a cat")],
    )
    .await;
    let requests = model.requests();
    let Content::Blocks(blocks) = &requests[1].messages.last().unwrap().content else {
        panic!("no pictures")
    };
    assert_eq!(
        blocks
            .iter()
            .filter(|block| block["type"] == "image_url")
            .count(),
        1
    );
    assert!(
        blocks.last().unwrap()["text"]
            .as_str()
            .unwrap()
            .contains("b.png is too large to be shown with the other images")
    );
}
