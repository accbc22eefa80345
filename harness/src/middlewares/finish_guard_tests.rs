//! Tests of the end of a run: safety filters, length limits, and models that return no text.

use std::sync::Arc;

use super::*;
use crate::agents::AgentBuilder;
use crate::agents::test_support::{ReplayModel, Reply, RunOutput, ask, calls, state_of};
use crate::messages::{MessageChunk, ToolCallChunk};
use crate::middlewares::TodoMiddleware;
use crate::runtime::agent::Agent;

fn agent(model: &Arc<ReplayModel>, safety: bool) -> Arc<dyn Agent> {
    AgentBuilder::new(model.clone())
        .middleware(FinishGuardMiddleware { safety })
        .build()
}

async fn output(replies: Vec<Reply>, safety: bool) -> (RunOutput, Arc<ReplayModel>) {
    let model = ReplayModel::new(replies);
    (ask(&agent(&model, safety), "go").await, model)
}

/// Answer with this text and finish reason, optionally with a call.
fn ended(text: &str, key: &str, reason: &str, calls: bool) -> Reply {
    let mut chunk = MessageChunk {
        content: text.to_owned(),
        ..MessageChunk::empty("")
    };
    chunk
        .response_metadata
        .insert(key.to_owned(), json!(reason));
    let piece = ToolCallChunk {
        name: Some("look".into()),
        args: Some("{}".into()),
        id: Some("c".into()),
        index: 0,
        kind: "tool_call_chunk",
    };
    chunk.tool_call_chunks.extend(calls.then_some(piece));
    Reply::Chunk(Box::new(chunk))
}

fn stop_reason(output: &RunOutput) -> Option<&str> {
    output.outcome.as_ref().unwrap().stop_reason.as_deref()
}

#[tokio::test]
async fn filtered_answer_is_replaced_by_explanation() {
    for (key, reason) in [
        ("finish_reason", "content_filter"),
        ("stop_reason", "refusal"),
        ("finish_reason", "IMAGE_SAFETY"),
    ] {
        for calls in [true, false] {
            let (output, model) = output(vec![ended("", key, reason, calls)], true).await;
            assert_eq!(
                (stop_reason(&output), model.requests().len()),
                (Some("safety_capped"), 1),
                "{reason}"
            );
            let answer = output.state().messages().last().unwrap();
            assert!(
                answer.tool_calls().is_empty() && answer.content.text().contains("content filter")
            );
            assert_eq!(
                answer.additional_kwargs["safety_termination"]["reason"],
                reason
            );
            assert!(output.events.iter().any(|event| matches!(event, AgentEvent::Custom(value) if value["type"] == "safety_termination")));
        }
    }
    let Reply::Chunk(mut broken) = ended("let me", "finish_reason", "SAFETY", true) else {
        panic!("a chunk")
    };
    broken.tool_call_chunks[0].args = Some("{".into());
    let (broken, _) = output(vec![Reply::Chunk(broken)], true).await;
    let mark = &broken.state().messages().last().unwrap().additional_kwargs["safety_termination"];
    assert_eq!(
        mark["suppressed_tool_calls"],
        json!(["look"]),
        "an unparsable call counts as a call"
    );
    let (half, _) = output(
        vec![ended(
            "half an answer",
            "finish_reason",
            "content_filter",
            false,
        )],
        true,
    )
    .await;
    assert_eq!(
        (stop_reason(&half), half.transcript()[1].as_str()),
        (None, "ai:half an answer")
    );
    let (blind, model) = output(
        vec![ended("", "finish_reason", "SAFETY", true), Reply::Say("on")],
        false,
    )
    .await;
    assert_eq!((stop_reason(&blind), model.requests().len()), (None, 2));
}

#[tokio::test]
async fn truncated_answer_sets_stop_reason() {
    for reason in ["length", "max_tokens", "MAX_TOKENS"] {
        let (output, _) = output(
            vec![ended("and then", "finish_reason", reason, false)],
            true,
        )
        .await;
        assert_eq!(stop_reason(&output), Some("model_length_capped"));
    }
}

#[tokio::test]
async fn empty_answer_is_requested_once_more() {
    let (output, model) = output(
        vec![
            calls([("c", "look", json!({}))]),
            Reply::Say(""),
            Reply::Say("here it is"),
        ],
        true,
    )
    .await;
    let requests = model.requests();
    assert_eq!(requests.len(), 3);
    let last = requests[2].messages.last().unwrap();
    assert_eq!(last.name.as_deref(), Some("terminal_response_recovery"));
    assert!(
        requests[2]
            .messages
            .iter()
            .filter(|message| message.is_ai())
            .count()
            == 1,
        "the empty answer is not sent"
    );
    assert_eq!(
        output
            .state()
            .messages()
            .iter()
            .filter(|message| message.is_ai())
            .count(),
        2,
        "the empty answer is removed from the thread"
    );
    assert_eq!(output.transcript().last().unwrap(), "ai:here it is");
}

#[tokio::test]
async fn recovery_happens_once_per_run() {
    let look = || calls([("c", "look", json!({}))]);
    let (output, model) = output(vec![look(), Reply::Say(""), look(), Reply::Say("")], true).await;
    assert_eq!(model.requests().len(), 4);
    assert_eq!(
        output.state().messages().last().unwrap().content.text(),
        NO_ANSWER
    );
    assert!(
        output
            .state()
            .messages()
            .iter()
            .all(|message| !is_empty(message))
    );
}

#[tokio::test]
async fn empty_answer_before_filtered_one_is_removed() {
    let replies = vec![
        calls([("c", "look", json!({}))]),
        Reply::Say(""),
        ended("", "finish_reason", "content_filter", false),
    ];
    let (output, _) = output(replies, true).await;
    assert_eq!(stop_reason(&output), Some("safety_capped"));
    assert_eq!(
        output
            .state()
            .messages()
            .iter()
            .filter(|message| message.is_ai())
            .count(),
        2
    );
}

#[tokio::test]
async fn reminders_of_others_do_not_hide_empty_answer() {
    let model = ReplayModel::new([
        calls([("c", "look", json!({}))]),
        Reply::Say(""),
        Reply::Say("here it is"),
    ]);
    let builder = AgentBuilder::new(model.clone())
        .middleware(TodoMiddleware)
        .middleware(RemindingMiddleware);
    ask(
        &builder
            .middleware(FinishGuardMiddleware { safety: true })
            .build(),
        "go",
    )
    .await;
    let requests = model.requests();
    let names: Vec<_> = requests[2]
        .messages
        .iter()
        .rev()
        .take(3)
        .map(|message| message.name.as_deref().unwrap())
        .collect();
    assert_eq!(
        (requests.len(), names),
        (3, vec![RECOVERY, "other", "look"])
    );
    assert!(
        requests[2]
            .messages
            .iter()
            .all(|message| !is_empty(message))
    );
}

/// Middleware that adds a reminder before each model call.
#[derive(Debug)]
struct RemindingMiddleware;

#[async_trait]
impl Middleware for RemindingMiddleware {
    fn name(&self) -> &str {
        "Reminds"
    }

    fn hooks(&self) -> Hooks {
        Hooks::WRAP_MODEL
    }

    async fn wrap_model_call(
        &self,
        mut request: ModelRequest,
        _ctx: &RunContext,
        next: ModelNext<'_>,
    ) -> Result<Message, ModelError> {
        request.messages.push(reminder("other", "a word"));
        next.run(request).await
    }
}

#[tokio::test]
async fn second_empty_answer_is_replaced() {
    let (output, model) = output(
        vec![calls([("c", "look", json!({}))]), Reply::Say("")],
        true,
    )
    .await;
    assert_eq!(model.requests().len(), 3);
    let last = output.state().messages().last().unwrap();
    assert!(last.flag(kwargs::ERROR_FALLBACK) && last.content.text() == NO_ANSWER);
    assert_eq!(
        output
            .state()
            .messages()
            .iter()
            .filter(|message| message.is_ai())
            .count(),
        2
    );
}

#[tokio::test]
async fn empty_answer_without_tools_stays() {
    let (output, model) = output(vec![Reply::Say("")], true).await;
    assert_eq!(
        (model.requests().len(), output.transcript()[1].as_str()),
        (1, "ai:")
    );
    assert!(
        is_empty(&Message::ai(" ")) && !is_empty(&state_of([Message::human("")]).messages()[0])
    );
}
