//! `read_artifact`: returns a file of a thread in a form that clients can use.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use harness::sandbox::{ThreadFiles, VirtualPath};
use harness::tools::builtins::type_of_content;
use rmcp::model::{CallToolResult, ContentBlock};

use crate::outcome::failure;

/// Maximum size of a returned file, in bytes: it becomes part of the caller's conversation.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Reads a file of the thread. Returns text as text and images as images. For other content,
/// returns an error that states the size.
pub(crate) async fn read(files: &ThreadFiles, path: &str) -> CallToolResult {
    let path = match VirtualPath::parse(path) {
        Ok(path) => path,
        Err(error) => return failure(format!("`path` cannot be used: {error}")),
    };
    match files.read_bytes(&path, MAX_FILE_BYTES).await {
        Ok(bytes) => shown(&path, bytes),
        Err(error) => failure(format!("The file cannot be read: {error}")),
    }
}

fn shown(path: &VirtualPath, bytes: Vec<u8>) -> CallToolResult {
    if let Some(kind) = type_of_content(&bytes) {
        return CallToolResult::success(vec![ContentBlock::image(STANDARD.encode(bytes), kind)]);
    }
    match String::from_utf8(bytes) {
        Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
        Err(error) => failure(format!(
            "{path} has {} bytes that are neither text nor a picture; ask the agent to tell what is in it.",
            error.as_bytes().len()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_images_are_returned_and_others_named() {
        let path = VirtualPath::parse("/mnt/user-data/outputs/a").unwrap();
        let text = shown(&path, "grün".into());
        assert_eq!(text.content[0].as_text().unwrap().text, "grün");
        let picture = shown(&path, b"GIF89a...".to_vec());
        assert_eq!(
            picture.content[0].as_image().unwrap().mime_type,
            "image/gif"
        );
        let other = shown(&path, vec![0xff, 0]);
        assert_eq!(other.is_error, Some(true));
        assert!(
            other.content[0]
                .as_text()
                .unwrap()
                .text
                .contains("has 2 bytes")
        );
    }
}
