//! Tables of contents.

use super::*;

fn mentions(bot: Option<&str>) -> Mentions {
    let mentions = json!([
        {"key": "@_user_1", "id": {"open_id": "ou_bot"}, "name": "Bot"},
        {"key": "@_user_2", "id": {"open_id": "ou_2"}, "name": "Zoë"},
        {"key": "@_user_10", "id": "ou_3", "name": "Ten"},
        {"key": 5}, null, {"key": "@_user_3", "id": [], "name": {}},
    ]);
    Mentions::read(&mentions, bot)
}

fn parsed(kind: &str, content: &Value) -> Parsed {
    parse(kind, content, "om_1", &mentions(Some("ou_bot")))
}

#[test]
fn mention_of_the_bot_is_removed_and_names_are_written() {
    for (text, expected) in [
        ("@_user_1 hello", "hello"),
        ("hello @_user_1", "hello"),
        ("@_user_1@_user_2 hi", "@Zoë hi"),
        ("ask @_user_10, @_user_2!", "ask @Ten, @Zoë!"),
        ("@_user_3 x@_user_99 @", "@someone x@_user_99 @"),
        ("@_all a@b.c @_user_1 /new", "@all a@b.c /new"),
    ] {
        assert_eq!(parsed("text", &json!({"text": text})).text, expected);
    }
}

#[test]
fn bot_is_mentioned_by_its_id_or_by_the_first_mention() {
    assert!(mentions(Some("ou_bot")).bot);
    assert!(!mentions(Some("ou_other")).bot);
    assert!(mentions(None).bot);
    assert!(!Mentions::read(&json!(null), None).bot);
    let all = json!([{"key": "@_all", "id": {}, "name": "all"}]);
    assert!(!Mentions::read(&all, None).bot);
}

#[test]
fn rich_text_becomes_paragraphs_and_files() {
    let content = json!({"title": "Title", "content": [
        [{"tag": "text", "text": "see "}, {"tag": "a", "text": "this", "href": "https://a.b"},
         {"tag": "at", "user_id": "@_user_1", "user_name": "Bot"}],
        [{"tag": "img", "image_key": "img_1"}],
        [{"tag": "at", "user_id": "ou_9", "user_name": "Nine"}, {"tag": "emotion", "emoji_type": "OK"}],
        [{"tag": "code_block", "language": "RUST", "text": "fn main() {}\n"}],
        "broken", [null, 7, {"tag": 9}],
        [{"tag": "media", "file_key": "file_1", "image_key": "img_2"}],
    ]});
    let expected = "Title\n\nsee [this](https://a.b)\n\n@Nine:OK:\n\n```rust\nfn main() {}\n```";
    let localized = json!({"zh_cn": content});
    for content in [content, localized] {
        let parsed = parsed("post", &content);
        assert_eq!(parsed.text, expected);
        let references: Vec<_> = parsed.files.iter().map(|file| &file.reference).collect();
        let image = json!({"message": "om_1", "key": "img_1", "type": "image"});
        let media = json!({"message": "om_1", "key": "file_1", "type": "file"});
        assert_eq!(references, [&image, &media]);
    }
}

#[test]
fn files_have_names_and_references() {
    let content = json!({"file_key": "file_1", "file_name": "a.pdf", "file_size": "12"});
    let file = &parsed("file", &content).files[0];
    assert_eq!((file.name.as_deref(), file.size), (Some("a.pdf"), Some(12)));
    let audio = &parsed("audio", &json!({"file_key": "file_2", "duration": 3})).files[0];
    assert_eq!(audio.reference["type"], "file");
    assert_eq!(audio.name.as_deref(), Some("feishu_file_2.opus"));
    let image = &parsed("image", &json!({"image_key": "img_1"})).files[0];
    assert_eq!(image.reference["type"], "image");
    assert_eq!(image.name.as_deref(), Some("feishu_img_1.png"));
    let image = &parsed("image", &json!({"image_key": "../ü/0123456789abcdef"})).files[0];
    assert_eq!(image.name.as_deref(), Some("feishu_456789abcdef.png"));
}

#[test]
fn other_kinds_become_notes() {
    for (kind, content, expected) in [
        ("sticker", json!({"file_key": "x"}), "[sticker]"),
        ("merge_forward", json!(null), "[forwarded messages]"),
        ("share_chat", json!({}), "[share_chat]"),
        ("a<b>\n@c", json!({}), "[abc]"),
        ("image", json!({"image_key": 5}), "[image]"),
        ("file", json!([]), "[file]"),
    ] {
        assert_eq!(parsed(kind, &content).text, expected);
    }
}
