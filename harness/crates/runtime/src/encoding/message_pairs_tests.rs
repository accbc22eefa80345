//! Pairs have the JSON of their parts, and texts of one message share the rest.

use proptest::prelude::*;
use serde_json::Value;
use serde_json::{Map, json};

use super::*;
use crate::test_support::text_chunk;
use deerflow_core::messages::{ToolCallChunk, UsageMetadata};

fn meta(node: &str) -> Arc<MessageMeta> {
    Arc::new(MessageMeta {
        langgraph_node: node.to_owned(),
        ..MessageMeta::default()
    })
}

/// Creates a chunk: of a text, or with another field as well.
fn chunk(id: u8, content: String, kind: u8) -> MessageChunk {
    let chunk = text_chunk(&format!("m{id}"), &content);
    match kind {
        0 => MessageChunk {
            tool_call_chunks: vec![ToolCallChunk {
                name: None,
                args: Some("{".to_owned()),
                id: None,
                index: 0,
                kind: "tool_call_chunk",
            }],
            ..chunk
        },
        1 => MessageChunk {
            chunk_position: Some("last"),
            ..chunk
        },
        2 => MessageChunk {
            usage_metadata: Some(UsageMetadata::default()),
            ..chunk
        },
        3 => MessageChunk {
            additional_kwargs: object("reasoning_content"),
            ..chunk
        },
        4 => MessageChunk {
            response_metadata: object("model_name"),
            ..chunk
        },
        _ => chunk,
    }
}

fn object(key: &str) -> Map<String, Value> {
    Map::from_iter([(key.to_owned(), json!("x"))])
}

/// Texts, of which some are too long for a shared block.
fn text_of_any_length() -> impl Strategy<Value = String> {
    prop_oneof![9 => ".{0,40}", 1 => "[a-z]{1000,1100}"]
}

proptest! {
    #[test]
    fn pairs_equal_their_serialization(
        chunks in proptest::collection::vec((0_u8..3, text_of_any_length(), 0_u8..12, 0_usize..2), 0..60),
    ) {
        let metas = [meta("a"), meta("b")];
        let mut pairs = MessagePairs::new();
        let mut encoded = Vec::new();
        for (id, content, kind, node) in chunks {
            let chunk = chunk(id, content, kind);
            let data = pairs.fragment(&chunk, &metas[node], &metas[node]);
            encoded.push((data, to_bytes(&(chunk, &metas[node]))));
        }
        for (data, expected) in encoded {
            prop_assert_eq!(data.into_bytes(), expected);
        }
    }
}

#[test]
fn texts_of_a_message_share_everything_else() {
    let (mut pairs, meta) = (MessagePairs::new(), meta("model"));
    let mut encode = |chunk| pairs.fragment(&chunk, &meta, &meta);
    let one = encode(text_chunk("m1", "one"));
    let two = encode(text_chunk("m1", "two"));
    let other = encode(text_chunk("m2", "one"));
    let after_text = |data: &EventData| data.tail().as_ptr();
    assert_eq!(one.own_len(), one.len());
    assert_eq!(two.own_len(), "[{\"content\":\"two\"".len());
    assert_eq!(after_text(&one), after_text(&two));
    assert_ne!(after_text(&one), after_text(&other));
}
