//! Tests of user messages in the form that models receive: a message with the fields of the form is
//! the reference.

use serde_json::json;

use super::*;
use deerflow_core::messages::Message;

fn sent(message: &Message, dialect: Dialect) -> Value {
    let framed = message.framed_text();
    json!(UserMessage::new(message.without_frame(), framed, dialect))
}

#[test]
fn framed_messages_are_sent_like_those_with_their_fields() {
    let text = |text: &str| json!({"type": "text", "text": text});
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}});
    let other_image = json!({"type": "image", "mime_type": "image/png", "base64": "AAAA"});
    let flattening = Dialect {
        flattens_content: true,
        ..Dialect::OPENAI
    };
    for content in [
        Content::from("a \"text\"\n"),
        Content::Blocks(vec![text("a")]),
        Content::Blocks(vec![
            image.clone(),
            text("a"),
            other_image,
            text("b"),
            json!("c"),
        ]),
        Content::Blocks(vec![image]),
    ] {
        let message = Message::human(content).with(|body| body.name = Some("ann".to_owned()));
        for dialect in [Dialect::OPENAI, flattening] {
            let unchanged = sent(&message.framed(|_| None), dialect);
            assert_eq!(unchanged, sent(&message, dialect));
        }
        let form = message.framed(|message| {
            let text = message.content.text_cow();
            Some(TextPieces::new(["> ".into(), text, "\n".into()]))
        });
        let with_its_fields = Message::from(MessageBody::clone(&form));
        for dialect in [Dialect::OPENAI, flattening] {
            let sent = sent(&form, dialect);
            assert_eq!(sent, self::sent(&with_its_fields, dialect));
            assert!(sent.to_string().contains("> "), "{sent}");
        }
    }
}
