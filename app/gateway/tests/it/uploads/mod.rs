//! Uploads: names, limits, and rejected requests without side effects.

mod files;
mod markdown;

use std::io::Read;

use async_trait::async_trait;
use harness::documents::{ConversionError, DocumentFuture, DocumentKind, DocumentReader};
use harness::ids::ThreadId;
use harness::runtime::actor_context::DEFAULT_USER_ID;
use harness::sandbox::{FileHome, VirtualPath, WriteMode};
use parking_lot::Mutex;

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
