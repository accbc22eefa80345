//! What a server's answer to a call becomes in the conversation.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::{Map, Value, json};

use super::reading::UNKNOWN;
use crate::messages::Content;
use crate::tools::builtins::type_of_content;
use crate::tools::{ToolError, ToolOutput};

/// The longest text of a result, in characters. What is shorter and still long goes to a file of the thread elsewhere.
const LONGEST_TEXT: usize = 1_000_000;
/// The largest image that a model is shown, in bytes of base64.
const LARGEST_IMAGE: usize = 7 * 1024 * 1024;
/// Blocks of one result.
const MOST_BLOCKS: usize = 200;
/// Images of one result.
const MOST_IMAGES: usize = 20;
/// The longest structured content that is kept, in bytes.
const LONGEST_STRUCTURE: usize = 1_000_000;

/// The output. `mask` rewrites texts so that they show no folder of this machine.
pub(super) fn output(
    result: CallToolResult,
    mask: impl Fn(&str) -> String,
) -> Result<ToolOutput, ToolError> {
    let left_out = result.content.len().saturating_sub(MOST_BLOCKS);
    let mut blocks: Vec<Value> = result
        .content
        .into_iter()
        .take(MOST_BLOCKS)
        .map(|block| shown(block, &mask))
        .collect();
    let structured = result
        .structured_content
        .map(|structured| masked(structured, &mask));
    if blocks.is_empty()
        && let Some(structured) = &structured
    {
        blocks.push(text(&structured.to_string()));
    }
    bound(&mut blocks);
    bound_images(&mut blocks);
    if left_out > 0 {
        blocks.push(text(&format!("[{left_out} more parts are left out]")));
    }
    let content = match joined(&blocks) {
        Some(text) => Content::Text(text),
        None => Content::Blocks(blocks),
    };
    if result.is_error == Some(true) {
        let said = content.text();
        let said = if said.trim().is_empty() {
            "the tool failed and did not say why"
        } else {
            said.trim()
        };
        return Err(ToolError::for_model(format!("Error: {said}")));
    }
    let kept = structured.filter(|structured| structured.to_string().len() <= LONGEST_STRUCTURE);
    let artifact = kept.map_or(
        Value::Null,
        |structured| json!({ "structured_content": structured }),
    );
    Ok(ToolOutput {
        artifact,
        ..ToolOutput::text(content)
    })
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn shown(block: ContentBlock, mask: &impl Fn(&str) -> String) -> Value {
    match block {
        ContentBlock::Text(block) => text(&mask(&block.text)),
        ContentBlock::Image(image) => bytes(&image.data, &image.mime_type),
        ContentBlock::Audio(audio) => bytes(&audio.data, &audio.mime_type),
        // Never an image at an address: the provider would open what a server names.
        ContentBlock::ResourceLink(link) => text(&mask(&format!("[{}: {}]", link.name, link.uri))),
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { text: said, .. } => text(&mask(&said)),
            ResourceContents::BlobResourceContents {
                blob, mime_type, ..
            } => bytes(&blob, &mime_type.unwrap_or_default()),
            _ => text(UNKNOWN),
        },
        _ => text(UNKNOWN),
    }
}

/// Bytes in base64: an image for the model, or a word about what it is not shown. A provider refuses a conversation for good that has
/// an image in it which is none, so what the bytes are counts, and not what they are said to be.
fn bytes(base64: &str, kind: &str) -> Value {
    let plain_kind: String = kind.chars().take(100).collect();
    let size = base64.len() / 4 * 3;
    if base64.len() > LARGEST_IMAGE {
        return text(&format!(
            "[{size} bytes of type {plain_kind:?}, which are too many to be shown]"
        ));
    }
    let base64: String = base64.split_ascii_whitespace().collect();
    let decoded = STANDARD.decode(&base64).unwrap_or_default();
    match type_of_content(&decoded) {
        Some(found) => json!({ "type": "image", "base64": base64, "mime_type": found }),
        None => text(&format!(
            "[{size} bytes of type {plain_kind:?}, which cannot be shown]"
        )),
    }
}

/// Leaves out images beyond the bound.
fn bound_images(blocks: &mut Vec<Value>) {
    let (mut images, before) = (0, blocks.len());
    blocks.retain(|block| {
        images += usize::from(block["type"] == "image");
        block["type"] != "image" || images <= MOST_IMAGES
    });
    if blocks.len() < before {
        blocks.push(text(&format!(
            "[{} more images are left out]",
            before - blocks.len()
        )));
    }
}

/// The value with all its texts rewritten.
fn masked(value: Value, mask: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => mask(&text).into(),
        Value::Array(items) => items.into_iter().map(|item| masked(item, mask)).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| (mask(&name), masked(value, mask)))
            .collect::<Map<_, _>>()
            .into(),
        other => other,
    }
}

/// Cuts the texts where they pass the limit together.
fn bound(blocks: &mut Vec<Value>) {
    let (mut left, mut dropped) = (LONGEST_TEXT, 0);
    blocks.retain_mut(|block| {
        let Some(Value::String(text)) = block.get_mut("text") else {
            return true;
        };
        let length = text.chars().count();
        if let Some((at, _)) = text.char_indices().nth(left) {
            text.truncate(at);
            dropped += length - left;
        }
        left = left.saturating_sub(length);
        !text.is_empty()
    });
    if dropped > 0 {
        blocks.push(text(&format!("[{dropped} more characters are left out]")));
    }
}

/// The text of blocks that are nothing else.
fn joined(blocks: &[Value]) -> Option<String> {
    let texts: Option<Vec<&str>> = blocks
        .iter()
        .map(|block| block.get("text")?.as_str())
        .collect();
    Some(texts?.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(result: Value) -> Result<ToolOutput, ToolError> {
        output(serde_json::from_value(result).unwrap(), |text| {
            text.replace("/host/ws", "/mnt/user-data/workspace")
        })
    }

    #[test]
    fn texts_become_one_and_show_no_folder_of_the_host() {
        let result = json!({"content": [
            {"type": "text", "text": "wrote /host/ws/a.txt"},
            {"type": "resource", "resource": {"uri": "file:///x", "text": "inside"}},
            {"type": "resource_link", "uri": "file:///host/ws/b", "name": "b"},
            {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
        ], "structuredContent": {"n": 1}});
        let output = read(result).unwrap();
        let wanted = "wrote /mnt/user-data/workspace/a.txt\ninside\n[b: file:///mnt/user-data/workspace/b]\n[3 bytes of type \"audio/wav\", which cannot be shown]";
        assert_eq!(
            (output.content, output.artifact),
            (wanted.into(), json!({"structured_content": {"n": 1}}))
        );
        assert_eq!(
            read(json!({"content": [], "structuredContent": [1]}))
                .unwrap()
                .content,
            "[1]".into()
        );
    }

    #[test]
    fn images_are_what_their_bytes_say_and_everything_else_is_text() {
        let png = "iVBORw0KGgoAAAAN";
        let shown =
            |block: Value| match read(json!({"content": [block, {"type": "text", "text": "t"}]}))
                .unwrap()
                .content
            {
                Content::Blocks(mut blocks) => blocks.swap_remove(0),
                Content::Text(text) => text.into(),
            };
        let image = |data: &str, kind: &str| {
            shown(json!({"type": "image", "data": data, "mimeType": kind}))
        };
        let wanted = json!({"type": "image", "base64": png, "mime_type": "image/png"});
        assert_eq!(image(png, "image/png"), wanted);
        assert_eq!(
            image("iVBORw0K\nGgoAAAAN\n", "image/jpeg"),
            wanted,
            "wrapped lines and a wrong kind are mended"
        );
        let large = "iVBORw0K".repeat(LARGEST_IMAGE / 8 + 1);
        for (data, kind) in [
            ("AAAA", "image/png"),
            ("no base64!", "image/png"),
            ("", "image/png"),
            ("PHN2Zz4=", "image/svg+xml"),
            (&*large, "image/png"),
        ] {
            let said = image(data, kind);
            assert!(
                said.as_str()
                    .is_some_and(|said| said.starts_with('[') && said.len() < 200),
                "{said}"
            );
        }
        let link = shown(
            json!({"type": "resource_link", "uri": "http://169.254.169.254/x.png", "name": "x", "mimeType": "image/png"}),
        );
        assert_eq!(link, "[x: http://169.254.169.254/x.png]\nt");
        let many =
            vec![json!({"type": "image", "data": png, "mimeType": "image/png"}); MOST_IMAGES + 5];
        let Content::Blocks(blocks) = read(json!({"content": many})).unwrap().content else {
            panic!("blocks")
        };
        assert_eq!(
            (blocks.len(), &blocks[MOST_IMAGES]["text"]),
            (MOST_IMAGES + 1, &json!("[5 more images are left out]"))
        );
    }

    #[test]
    fn structured_content_shows_no_folder_of_the_host_and_is_bounded() {
        let artifact = |structured: Value| {
            read(json!({"content": [], "structuredContent": structured}))
                .unwrap()
                .artifact
        };
        let shown = artifact(json!({"/host/ws/a": [{"at": "/host/ws"}]}));
        let wanted = json!({"/mnt/user-data/workspace/a": [{"at": "/mnt/user-data/workspace"}]});
        assert_eq!(shown, json!({"structured_content": wanted}));
        assert_eq!(
            artifact(json!({"a": "x".repeat(LONGEST_STRUCTURE)})),
            Value::Null
        );
    }

    #[test]
    fn a_failure_is_the_models_to_read() {
        let error =
            |content: Value| read(json!({"content": content, "isError": true})).unwrap_err();
        assert_eq!(
            error(json!([{"type": "text", "text": "no such repo"}])),
            ToolError::for_model("Error: no such repo")
        );
        assert_eq!(
            error(json!([])),
            ToolError::for_model("Error: the tool failed and did not say why")
        );
    }

    #[test]
    fn a_flood_is_cut() {
        let many: Vec<Value> = (0..1_000)
            .map(|_| json!({"type": "text", "text": "ü".repeat(10_000)}))
            .collect();
        let text = read(json!({"content": many})).unwrap().content.text();
        assert!(
            text.chars().count() < LONGEST_TEXT + 20_000
                && text.contains("[800 more parts are left out]")
        );
    }
}
