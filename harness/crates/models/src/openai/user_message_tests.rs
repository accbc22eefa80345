//! Tests of large user messages: the conversion of the other messages is the reference.

use serde_json::json;

use super::*;
use crate::openai::wire;

fn assert_sent_like_others(message: &Message) {
    for flattens_content in [false, true] {
        let dialect = Dialect {
            flattens_content,
            ..Dialect::OPENAI
        };
        let sent = LargeUserMessage::of(message, dialect).map(|message| json!(message));
        assert!(sent == wire::message(message, dialect), "a message differs");
    }
}

#[test]
fn large_user_messages_are_sent_like_others() {
    let long = "long \"text\"\n".repeat(100_000);
    let text = |text: &str| json!({"type": "text", "text": text});
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}});
    let other_image = json!({"type": "image", "mime_type": "image/png", "base64": "AAAA"});
    for content in [
        Content::Text(long.clone()),
        Content::Blocks(vec![text(&long)]),
        Content::Blocks(vec![image, text(&long), other_image, text("b"), json!("c")]),
    ] {
        let message = Message::human(content).with(|body| body.name = Some("ann".to_owned()));
        assert!(message.is_large());
        assert_sent_like_others(&message);
        assert_sent_like_others(&message.framed(|_| None));
        let framed = message.framed(|message| {
            let text = message.content.text_cow();
            Some(TextPieces::new(["> ".into(), text, "\n".into()]))
        });
        assert_sent_like_others(&framed);
    }
    assert!(LargeUserMessage::of(&Message::ai(long), Dialect::OPENAI).is_none());
}
