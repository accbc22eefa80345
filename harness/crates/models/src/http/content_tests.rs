//! Tests of normalised images, call ids, tool names and turns.

use super::*;

#[test]
fn images_of_every_shape_are_normalised() {
    let content = Content::Blocks(
        json!([
            "plain", "", {"type": "text", "text": ""}, 7,
            {"type": "image_url", "image_url": {"url": "data:image/gif;charset=x;base64,AA", "detail": "low"}},
            {"type": "image_url", "image_url": "http://x/y.png"},
            {"type": "image", "base64": "BB", "mime_type": "image/webp"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "CC"}},
            {"type": "image", "source": {"type": "url", "url": "data:broken"}},
            {"type": "thinking", "thinking": "t"},
            {"type": "input_audio"},
        ])
        .as_array()
        .unwrap()
        .clone(),
    );
    assert_eq!(
        blocks(&content),
        [
            Block::Text("plain"),
            Block::Image(Image::Bytes {
                mime: "image/gif",
                base64: "AA"
            }),
            Block::Image(Image::Address("http://x/y.png")),
            Block::Image(Image::Bytes {
                mime: "image/webp",
                base64: "BB"
            }),
            Block::Image(Image::Bytes {
                mime: "image/png",
                base64: "CC"
            }),
            Block::Model(&json!({"type": "thinking", "thinking": "t"})),
            Block::Other(&json!({"type": "input_audio"})),
        ]
    );
    assert_eq!(
        Image::Bytes {
            mime: "a/b",
            base64: "Q"
        }
        .address(),
        "data:a/b;base64,Q"
    );
}

#[test]
fn long_ids_are_shortened_deterministically() {
    let long = format!("call_{}_0", "x".repeat(40));
    assert_eq!(
        (short_id("call_1", 40), short_id(&long, 64)),
        ("call_1".into(), long.as_str().into())
    );
    assert_eq!(
        (short_id(&long, 40).len(), short_id(&long, 40)),
        (37, short_id(&long, 40))
    );
    assert_ne!(short_id(&long, 40), short_id(&long.replace("_0", "_1"), 40));
}

#[test]
fn invented_tool_names_are_sanitised() {
    for (name, expected) in [
        ("read-file_2", "read-file_2"),
        ("fs.read file", "fs_read_file"),
        ("", "unknown_tool"),
        ("工具", "unknown_tool"),
    ] {
        assert_eq!(tool_name(name), expected);
    }
    assert_eq!(tool_name(&"n".repeat(90)).len(), 64);
}

#[test]
fn blocks_of_one_role_are_merged_into_one_turn() {
    let mut turns = vec![];
    push_turn(&mut turns, "user", "parts", vec![json!(1)]);
    push_turn(&mut turns, "user", "parts", vec![json!(2)]);
    push_turn(&mut turns, "model", "parts", vec![]);
    push_turn(&mut turns, "model", "parts", vec![json!(3)]);
    assert_eq!(
        json!(turns),
        json!([{"role": "user", "parts": [1, 2]}, {"role": "model", "parts": [3]}])
    );
}
