//! Answers below, at and above their limit.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use deerflow_core::messages::{Message, MessageAccumulator, MessageKind, ToolCallChunk};

/// Model that never stops. Counts the chunks that were requested.
#[derive(Debug)]
struct Endless {
    info: ModelInfo,
    chunk: MessageChunk,
    chunk_requests: Arc<AtomicUsize>,
}

#[async_trait]
impl ChatModel for Endless {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    async fn stream(&self, _: ModelRequest) -> Result<ModelStream, ModelError> {
        let (chunk, chunk_requests) = (self.chunk.clone(), self.chunk_requests.clone());
        Ok(Box::pin(stream::repeat_with(move || {
            chunk_requests.fetch_add(1, Ordering::Relaxed);
            Ok(chunk.clone())
        })))
    }
}

/// Returns the message of an answer that repeats `chunk` under a limit of `max_bytes`, and the
/// number of chunks that were requested.
async fn answer(chunk: MessageChunk, max_bytes: usize) -> (Message, usize) {
    let chunk_requests = Arc::new(AtomicUsize::new(0));
    let info = ModelInfo {
        name: "e".to_owned(),
        model: "e-1".to_owned(),
        provider: "p".to_owned(),
        supports_vision: false,
    };
    let entry = ModelEntry {
        max_answer_bytes: Some(max_bytes),
        ..ModelEntry::new("e", "p", "e-1")
    };
    let model = SizeLimited::wrap(
        &entry,
        Arc::new(Endless {
            info,
            chunk,
            chunk_requests: chunk_requests.clone(),
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
    let mut accumulator = MessageAccumulator::new("m");
    chunks.iter().for_each(|chunk| accumulator.push(chunk));
    (accumulator.finish(), chunk_requests.load(Ordering::Relaxed))
}

fn text(content: &str) -> MessageChunk {
    MessageChunk {
        content: content.to_owned(),
        ..MessageChunk::empty("m")
    }
}

#[tokio::test]
async fn endless_answer_ends_at_limit_with_reason_length() {
    let (message, chunk_requests) = answer(text("word "), 23).await;
    assert_eq!(
        (message.content.text().as_str(), chunk_requests),
        ("word word word word wor", 5)
    );
    let metadata = &message.response_metadata;
    assert_eq!(
        (&metadata["finish_reason"], &metadata["model_name"]),
        (&json!("length"), &json!("e-1"))
    );
}

#[tokio::test]
async fn truncation_respects_character_boundaries() {
    let (message, _) = answer(text("😀"), 10).await;
    assert_eq!(message.content.text(), "😀😀");
}

#[tokio::test]
async fn reasoning_and_arguments_count_too() {
    let mut thought = MessageChunk::empty("m");
    thought
        .additional_kwargs
        .insert(kwargs::REASONING_CONTENT.to_owned(), json!("hmm "));
    let (message, chunk_requests) = answer(thought, 10).await;
    assert_eq!(
        (
            &message.additional_kwargs[kwargs::REASONING_CONTENT],
            chunk_requests
        ),
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
    let (message, chunk_requests) = answer(call, 10).await;
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
            chunk_requests
        ),
        ("abab", Some("{\"a\":{"), 2)
    );
}

#[test]
fn zero_means_no_limit() {
    let entry = ModelEntry {
        max_answer_bytes: Some(0),
        ..ModelEntry::new("e", "p", "e-1")
    };
    let model: Arc<dyn ChatModel> = Arc::new(crate::ScriptedModel::default());
    assert!(Arc::ptr_eq(
        &model,
        &SizeLimited::wrap(&entry, model.clone())
    ));
    let limited = SizeLimited::wrap(&ModelEntry::new("e", "p", "e-1"), model.clone());
    assert!(!Arc::ptr_eq(&model, &limited), "the default is a limit");
}
