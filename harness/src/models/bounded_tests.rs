//! Answers below, at and beyond their limit.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::messages::{Message, MessageAccumulator, MessageKind, ToolCallChunk};

/// A model that never stops; counts what was asked of its stream.
#[derive(Debug)]
struct Endless {
    info: ModelInfo,
    chunk: MessageChunk,
    asked: Arc<AtomicUsize>,
}

#[async_trait]
impl ChatModel for Endless {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    async fn stream(&self, _: ModelRequest) -> Result<ModelStream, ModelError> {
        let (chunk, asked) = (self.chunk.clone(), self.asked.clone());
        Ok(Box::pin(stream::repeat_with(move || {
            asked.fetch_add(1, Ordering::Relaxed);
            Ok(chunk.clone())
        })))
    }
}

/// The message of an answer that repeats `chunk` under a limit of so many bytes, and how many chunks the provider gave.
async fn answer(chunk: MessageChunk, most: usize) -> (Message, usize) {
    let asked = Arc::new(AtomicUsize::new(0));
    let info = ModelInfo {
        name: "e".to_owned(),
        model: "e-1".to_owned(),
        provider: "p".to_owned(),
        supports_vision: false,
    };
    let entry = ModelEntry {
        max_answer_bytes: Some(most),
        ..ModelEntry::new("e", "p", "e-1")
    };
    let model = Bounded::by(
        &entry,
        Arc::new(Endless {
            info,
            chunk,
            asked: asked.clone(),
        }),
    );
    let request = ModelRequest {
        message_id: "m".to_owned(),
        system: None,
        messages: vec![Message::human("go")],
        tools: [].into(),
        thinking: false,
        reasoning_effort: None,
        overrides: Map::new(),
    };
    let chunks: Vec<MessageChunk> = model
        .stream(request)
        .await
        .unwrap()
        .map(|chunk| chunk.unwrap())
        .collect()
        .await;
    assert_eq!(
        chunks
            .iter()
            .filter(|chunk| chunk.chunk_position == Some("last"))
            .count(),
        1
    );
    let mut sum = MessageAccumulator::new("m");
    chunks.iter().for_each(|chunk| sum.push(chunk));
    (sum.finish(), asked.load(Ordering::Relaxed))
}

fn text(content: &str) -> MessageChunk {
    MessageChunk {
        content: content.to_owned(),
        ..MessageChunk::empty("m")
    }
}

#[tokio::test]
async fn an_endless_answer_ends_at_its_limit_as_length() {
    let (message, asked) = answer(text("word "), 23).await;
    assert_eq!(
        (message.content.text().as_str(), asked),
        ("word word word word wor", 5)
    );
    let metadata = &message.response_metadata;
    assert_eq!(
        (&metadata["finish_reason"], &metadata["model_name"]),
        (&json!("length"), &json!("e-1"))
    );
}

#[tokio::test]
async fn an_answer_is_never_cut_within_a_character() {
    let (message, _) = answer(text("😀"), 10).await;
    assert_eq!(message.content.text(), "😀😀");
}

#[tokio::test]
async fn reasoning_and_arguments_count_too() {
    let mut thought = MessageChunk::empty("m");
    thought
        .additional_kwargs
        .insert(kwargs::REASONING_CONTENT.to_owned(), json!("hmm "));
    let (message, asked) = answer(thought, 10).await;
    assert_eq!(
        (&message.additional_kwargs[kwargs::REASONING_CONTENT], asked),
        (&json!("hmm hmm hm"), 3)
    );

    let piece = ToolCallChunk {
        name: None,
        args: Some("{\"a\":".to_owned()),
        id: Some("c".to_owned()),
        index: 0,
        kind: "tool_call_chunk",
    };
    let call = MessageChunk {
        content: "ab".to_owned(),
        tool_call_chunks: vec![piece],
        ..MessageChunk::empty("m")
    };
    let (message, asked) = answer(call, 10).await;
    let MessageKind::Ai {
        invalid_tool_calls, ..
    } = &message.kind
    else {
        panic!("an answer")
    };
    assert_eq!(
        (
            message.content.text().as_str(),
            invalid_tool_calls[0].args.as_deref(),
            asked
        ),
        ("abab", Some("{\"a\":{"), 2)
    );
}

#[test]
fn a_limit_of_zero_is_none() {
    let entry = ModelEntry {
        max_answer_bytes: Some(0),
        ..ModelEntry::new("e", "p", "e-1")
    };
    let model: Arc<dyn ChatModel> = Arc::new(crate::models::ScriptedModel::default());
    assert!(Arc::ptr_eq(&model, &Bounded::by(&entry, model.clone())));
    let limited = Bounded::by(&ModelEntry::new("e", "p", "e-1"), model.clone());
    assert!(
        !Arc::ptr_eq(&model, &limited),
        "without a word there is a limit"
    );
}
