//! Complete turns of the scripted model, through the port.

use std::sync::Arc;

use futures_util::StreamExt;
use serde_json::{Map, json};

use super::*;
use crate::{ModelErrorKind, ToolSchema};
use deerflow_core::messages::{Message, MessageAccumulator, MessageChunk, MessageKind, ToolStatus};

fn request(messages: Vec<Message>, tools: &[&str]) -> ModelRequest {
    let tool = |name: &&str| ToolSchema {
        name: (*name).to_owned(),
        description: String::new(),
        parameters: json!({}),
    };
    ModelRequest {
        message_id: "m1".to_owned(),
        system: Some("Be brief.".into()),
        messages,
        tools: tools.iter().map(tool).collect(),
        thinking: false,
        reasoning_effort: None,
        overrides: Map::new(),
    }
}

async fn played(
    model: &ScriptedModel,
    request: ModelRequest,
) -> (Vec<MessageChunk>, Option<ModelError>) {
    let mut chunks = Vec::new();
    let mut stream = match model.stream(request).await {
        Ok(stream) => stream,
        Err(error) => return (chunks, Some(error)),
    };
    while let Some(item) = stream.next().await {
        match item {
            Ok(chunk) => chunks.push(chunk),
            Err(error) => return (chunks, Some(error)),
        }
    }
    (chunks, None)
}

async fn answer(messages: Vec<Message>, tools: &[&str]) -> Message {
    let (chunks, error) = played(&ScriptedModel::default(), request(messages, tools)).await;
    assert_eq!(error, None);
    assert_eq!(
        chunks.last().and_then(|chunk| chunk.chunk_position),
        Some("last")
    );
    let mut accumulator = MessageAccumulator::new("m1");
    chunks.iter().for_each(|chunk| accumulator.push(chunk));
    accumulator.finish()
}

#[tokio::test]
async fn plain_message_gets_configuration_help() {
    let (chunks, _) = played(
        &ScriptedModel::default(),
        request(vec![Message::human("hi")], &["ls"]),
    )
    .await;
    assert!(chunks.len() > 50, "streams word by word");
    let text: String = chunks.iter().map(|chunk| chunk.content.as_str()).collect();
    for hint in [
        "scripted model",
        "config.yaml",
        "langchain_openai:ChatOpenAI",
        "$OPENAI_API_KEY",
        "[[tool:ls {",
    ] {
        assert!(text.contains(hint), "{hint}");
    }
}

#[tokio::test]
async fn demo_calls_offered_tools_and_ends() {
    let mut messages = vec![Message::human("Show me a demo!")];
    let mut called = Vec::new();
    loop {
        let turn = answer(messages.clone(), &["write_file", "present_files", "bash"]).await;
        let calls = turn.tool_calls().to_vec();
        messages.push(turn);
        let Some(call) = calls.first() else { break };
        called.push(call.name.clone());
        messages.push(Message::tool(call, "OK", ToolStatus::Success));
    }
    assert_eq!(called, ["write_file", "present_files"]);
}

#[tokio::test]
async fn steps_follow_turns_and_skip_unoffered_tools() {
    let prompt = r#"[[tool:gone {}]] [[tools:[{"name":"a","args":{"x":1}},{"name":"gone"},{"name":"b"}]]] [[rawtool:a "{x"]] then say fin"#;
    let mut messages = vec![
        Message::human("[[tool:a {}]]"),
        Message::ai("old turn"),
        Message::human(prompt),
    ];
    let first = answer(messages.clone(), &["a", "b"]).await;
    let names: Vec<_> = first
        .tool_calls()
        .iter()
        .map(|call| (call.name.as_str(), call.args.len()))
        .collect();
    assert_eq!(names, [("a", 1), ("b", 0)]);
    assert_ne!(first.tool_calls()[0].id, first.tool_calls()[1].id);
    assert_eq!(first.response_metadata["finish_reason"], "tool_calls");
    messages.push(first);
    let second = answer(messages.clone(), &["a", "b"]).await;
    assert!(
        matches!(&second.kind, MessageKind::Ai { invalid_tool_calls, .. } if invalid_tool_calls[0].args.as_deref() == Some("{x"))
    );
    messages.push(second);
    assert_eq!(answer(messages, &["a", "b"]).await.content.text(), "fin");
    let side_prompt = Message::human(format!("Summarize: {prompt}"));
    assert_eq!(answer(vec![side_prompt], &[]).await.content.text(), "fin");
}

#[tokio::test]
async fn first_call_piece_has_name_and_id() {
    let prompt = r#"[[frag]][[tool:a {"text":"zwölf"}]]"#;
    let (chunks, _) = played(
        &ScriptedModel::default(),
        request(vec![Message::human(prompt)], &["a"]),
    )
    .await;
    let pieces: Vec<_> = chunks
        .iter()
        .flat_map(|chunk| &chunk.tool_call_chunks)
        .collect();
    assert_eq!(pieces[0].name.as_deref(), Some("a"));
    assert_eq!(
        chunks[0].tool_calls[0].id.as_str(),
        pieces[0].id.as_deref().unwrap()
    );
    assert!(
        pieces[1..]
            .iter()
            .all(|piece| piece.name.is_none() && piece.id.is_none() && piece.index == 0)
    );
    let args: String = pieces
        .iter()
        .filter_map(|piece| piece.args.as_deref())
        .collect();
    assert_eq!(args, r#"{"text":"zwölf"}"#);
}

#[tokio::test]
async fn thinking_stop_reason_and_usage_are_reported() {
    let turn = answer(
        vec![Message::human(
            "[[think deep thoughts]] [[stop length]] [[usage 11,7]] then say short",
        )],
        &[],
    )
    .await;
    assert_eq!(turn.additional_kwargs["reasoning_content"], "deep thoughts");
    assert_eq!(turn.response_metadata["finish_reason"], "length");
    assert_eq!(turn.response_metadata["model_provider"], "scripted");
    let usage = turn.usage().unwrap();
    assert_eq!(
        (usage.input_tokens, usage.output_tokens, usage.total_tokens),
        (11, 7, 18)
    );
    let counted = answer(vec![Message::human("then say one two three")], &[]).await;
    assert_eq!(
        counted
            .usage()
            .map(|usage| (usage.input_tokens, usage.output_tokens)),
        Some((2 + 5, 3))
    );
}

#[tokio::test(start_paused = true)]
async fn slow_and_delay_wait_and_split_text_evenly() {
    let model = ScriptedModel::default();
    let start = tokio::time::Instant::now();
    let (chunks, _) = played(
        &model,
        request(
            vec![Message::human(
                "[[delay 300]] [[slow 5x20ms]] then say aaaaabbbbb",
            )],
            &[],
        ),
    )
    .await;
    assert_eq!(start.elapsed().as_millis(), 400);
    assert_eq!(
        chunks
            .iter()
            .filter(|chunk| !chunk.content.is_empty())
            .count(),
        5
    );
    let text = answer(vec![Message::human("[[slow 3x1ms]]")], &[])
        .await
        .content
        .text();
    assert_eq!(text, "tok0 tok1 tok2 ");
}

#[tokio::test(start_paused = true)]
async fn failure_directives_fail_the_turn() {
    let model = ScriptedModel::default();
    let play = |text: &str| played(&model, request(vec![Message::human(text)], &[]));
    let (chunks, error) = play("[[error 401]]").await;
    assert_eq!(
        (chunks.len(), error.map(|error| (error.kind, error.status))),
        (0, Some((ModelErrorKind::Auth, Some(401))))
    );
    let (chunks, error) = play("[[cut 2]] then say a b c d").await;
    assert_eq!(
        (chunks.len(), error.map(|error| error.kind)),
        (2, Some(ModelErrorKind::Transient))
    );
    let (chunks, error) = play("[[garbage]] then say a b c d").await;
    assert_eq!(
        (chunks.len(), error.map(|error| error.kind)),
        (2, Some(ModelErrorKind::Transient))
    );
    let (chunks, error) = play("[[hang]]").await;
    assert_eq!(
        (chunks.len(), error.map(|error| error.kind)),
        (0, Some(ModelErrorKind::Stalled))
    );
    let (_, error) = play("[[slow very]]").await;
    assert!(
        error.is_some_and(|error| error.kind == ModelErrorKind::BadRequest
            && error.message.contains("[[slow very]]"))
    );
}

#[tokio::test]
async fn counted_failure_ends_and_is_per_conversation() {
    let model = Arc::new(ScriptedModel::default());
    let text = "[[error 429 times=2]] then say there";
    for expected in [Some(429), Some(429), None, None] {
        let (_, error) = played(&model, request(vec![Message::human(text)], &[])).await;
        assert_eq!(error.and_then(|error| error.status), expected);
    }
    let longer = vec![Message::human("x"), Message::ai("y"), Message::human(text)];
    assert!(played(&model, request(longer, &[])).await.1.is_some());
}
