//! Tests of the conversion of call results.

use super::*;

fn read(result: Value) -> Result<ToolOutput, ToolError> {
    output(serde_json::from_value(result).unwrap(), |text| {
        text.replace("/host/ws", "/mnt/user-data/workspace")
    })
}

#[test]
fn texts_are_joined_and_host_paths_masked() {
    let result = json!({"content": [
        {"type": "text", "text": "wrote /host/ws/a.txt"},
        {"type": "resource", "resource": {"uri": "file:///x", "text": "inside"}},
        {"type": "resource_link", "uri": "file:///host/ws/b", "name": "b"},
        {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
    ], "structuredContent": {"n": 1}});
    let output = read(result).unwrap();
    let expected = "wrote /mnt/user-data/workspace/a.txt\ninside\n[b: file:///mnt/user-data/workspace/b]\n[3 bytes of type \"audio/wav\", which cannot be shown]";
    assert_eq!(
        (output.content, output.artifact),
        (expected.into(), json!({"structured_content": {"n": 1}}))
    );
    assert_eq!(
        read(json!({"content": [], "structuredContent": [1]}))
            .unwrap()
            .content,
        "[1]".into()
    );
}

#[test]
fn image_kind_is_detected_from_bytes() {
    let png = "iVBORw0KGgoAAAAN";
    let content_block =
        |block: Value| match read(json!({"content": [block, {"type": "text", "text": "t"}]}))
            .unwrap()
            .content
        {
            Content::Blocks(mut blocks) => blocks.swap_remove(0),
            Content::Text(text) => text.into(),
        };
    let image = |data: &str, kind: &str| {
        content_block(json!({"type": "image", "data": data, "mimeType": kind}))
    };
    let expected = json!({"type": "image", "base64": png, "mime_type": "image/png"});
    assert_eq!(image(png, "image/png"), expected);
    assert_eq!(
        image("iVBORw0K\nGgoAAAAN\n", "image/jpeg"),
        expected,
        "line breaks are removed and a wrong media type is corrected"
    );
    let large = "iVBORw0K".repeat(MAX_IMAGE_BASE64_BYTES / 8 + 1);
    for (data, kind) in [
        ("AAAA", "image/png"),
        ("no base64!", "image/png"),
        ("", "image/png"),
        ("PHN2Zz4=", "image/svg+xml"),
        (&*large, "image/png"),
    ] {
        let text_content = image(data, kind);
        assert!(
            text_content.as_str().is_some_and(
                |text_content| text_content.starts_with('[') && text_content.len() < 200
            ),
            "{text_content}"
        );
    }
    let link = content_block(
        json!({"type": "resource_link", "uri": "http://169.254.169.254/x.png", "name": "x", "mimeType": "image/png"}),
    );
    assert_eq!(link, "[x: http://169.254.169.254/x.png]\nt");
    let many = vec![json!({"type": "image", "data": png, "mimeType": "image/png"}); MAX_IMAGES + 5];
    let Content::Blocks(blocks) = read(json!({"content": many})).unwrap().content else {
        panic!("blocks")
    };
    assert_eq!(
        (blocks.len(), &blocks[MAX_IMAGES]["text"]),
        (MAX_IMAGES + 1, &json!("[5 more images are left out]"))
    );
}

#[test]
fn structured_content_is_masked_and_limited() {
    let artifact = |structured: Value| {
        read(json!({"content": [], "structuredContent": structured}))
            .unwrap()
            .artifact
    };
    let content_block = artifact(json!({"/host/ws/a": [{"at": "/host/ws"}]}));
    let expected = json!({"/mnt/user-data/workspace/a": [{"at": "/mnt/user-data/workspace"}]});
    assert_eq!(content_block, json!({"structured_content": expected}));
    assert_eq!(
        artifact(json!({"a": "x".repeat(MAX_STRUCTURED_BYTES)})),
        Value::Null
    );
}

#[test]
fn error_result_becomes_error_for_model() {
    let error = |content: Value| read(json!({"content": content, "isError": true})).unwrap_err();
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
fn excess_content_is_truncated() {
    let many: Vec<Value> = (0..1_000)
        .map(|_| json!({"type": "text", "text": "ü".repeat(10_000)}))
        .collect();
    let text = read(json!({"content": many})).unwrap().content.text();
    assert!(
        text.chars().count() < MAX_TEXT_CHARS + 20_000
            && text.contains("[800 more parts are left out]")
    );
}
