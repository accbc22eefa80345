//! The last word of a run: filters, lengths, and models that say nothing.

use std::sync::Arc;

use super::*;
use crate::agents::AgentBuilder;
use crate::agents::test_support::{ReplayModel, Reply, Said, ask, calls, state_of};
use crate::messages::{MessageChunk, ToolCallChunk};
use crate::middlewares::TodoMiddleware;
use crate::runtime::agent::Agent;

fn agent(model: &Arc<ReplayModel>, safety: bool) -> Arc<dyn Agent> {
    AgentBuilder::new(model.clone())
        .middleware(FinishGuardMiddleware { safety })
        .build()
}

async fn said(replies: Vec<Reply>, safety: bool) -> (Said, Arc<ReplayModel>) {
    let model = ReplayModel::new(replies);
    (ask(&agent(&model, safety), "go").await, model)
}

/// An answer with this text that ended for this reason; with a call, if wanted.
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

fn stop_reason(said: &Said) -> Option<&str> {
    said.outcome.as_ref().unwrap().stop_reason.as_deref()
}

#[tokio::test]
async fn calls_and_silence_of_a_filtered_answer_become_an_explanation() {
    for (key, reason) in [
        ("finish_reason", "content_filter"),
        ("stop_reason", "refusal"),
        ("finish_reason", "IMAGE_SAFETY"),
    ] {
        for calls in [true, false] {
            let (said, model) = said(vec![ended("", key, reason, calls)], true).await;
            assert_eq!(
                (stop_reason(&said), model.asked().len()),
                (Some("safety_capped"), 1),
                "{reason}"
            );
            let answer = said.state().messages().last().unwrap();
            assert!(
                answer.tool_calls().is_empty() && answer.content.text().contains("content filter")
            );
            assert_eq!(
                answer.additional_kwargs["safety_termination"]["reason"],
                reason
            );
            assert!(said.events.iter().any(|event| matches!(event, AgentEvent::Custom(value) if value["type"] == "safety_termination")));
        }
    }
    let Reply::Chunk(mut broken) = ended("let me", "finish_reason", "SAFETY", true) else {
        panic!("a chunk")
    };
    broken.tool_call_chunks[0].args = Some("{".into());
    let (broken, _) = said(vec![Reply::Chunk(broken)], true).await;
    let mark = &broken.state().messages().last().unwrap().additional_kwargs["safety_termination"];
    assert_eq!(
        mark["suppressed_tool_calls"],
        json!(["look"]),
        "a call that cannot be read is one"
    );
    let (half, _) = said(
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
    let (blind, model) = said(
        vec![ended("", "finish_reason", "SAFETY", true), Reply::Say("on")],
        false,
    )
    .await;
    assert_eq!((stop_reason(&blind), model.asked().len()), (None, 2));
}

#[tokio::test]
async fn an_answer_cut_at_its_length_says_why_the_run_ended() {
    for reason in ["length", "max_tokens", "MAX_TOKENS"] {
        let (said, _) = said(
            vec![ended("and then", "finish_reason", reason, false)],
            true,
        )
        .await;
        assert_eq!(stop_reason(&said), Some("model_length_capped"));
    }
}

#[tokio::test]
async fn a_model_without_a_word_is_asked_once_more() {
    let (said, model) = said(
        vec![
            calls([("c", "look", json!({}))]),
            Reply::Say(""),
            Reply::Say("here it is"),
        ],
        true,
    )
    .await;
    let asked = model.asked();
    assert_eq!(asked.len(), 3);
    let last = asked[2].messages.last().unwrap();
    assert_eq!(last.name.as_deref(), Some("terminal_response_recovery"));
    assert!(
        asked[2]
            .messages
            .iter()
            .filter(|message| message.is_ai())
            .count()
            == 1,
        "the empty answer is not sent"
    );
    assert_eq!(
        said.state()
            .messages()
            .iter()
            .filter(|message| message.is_ai())
            .count(),
        2,
        "and not kept"
    );
    assert_eq!(said.transcript().last().unwrap(), "ai:here it is");
}

#[tokio::test]
async fn a_model_is_asked_once_more_in_a_run_and_not_after_each_call() {
    let look = || calls([("c", "look", json!({}))]);
    let (said, model) = said(vec![look(), Reply::Say(""), look(), Reply::Say("")], true).await;
    assert_eq!(model.asked().len(), 4);
    assert_eq!(
        said.state().messages().last().unwrap().content.text(),
        SPEECHLESS
    );
    assert!(
        said.state()
            .messages()
            .iter()
            .all(|message| !is_empty(message))
    );
}

#[tokio::test]
async fn an_empty_answer_before_a_filtered_one_is_taken_back() {
    let replies = vec![
        calls([("c", "look", json!({}))]),
        Reply::Say(""),
        ended("", "finish_reason", "content_filter", false),
    ];
    let (said, _) = said(replies, true).await;
    assert_eq!(stop_reason(&said), Some("safety_capped"));
    assert_eq!(
        said.state()
            .messages()
            .iter()
            .filter(|message| message.is_ai())
            .count(),
        2
    );
}

#[tokio::test]
async fn neighbours_that_speak_first_do_not_hide_an_empty_answer() {
    let model = ReplayModel::new([
        calls([("c", "look", json!({}))]),
        Reply::Say(""),
        Reply::Say("here it is"),
    ]);
    let builder = AgentBuilder::new(model.clone())
        .middleware(TodoMiddleware)
        .middleware(Reminds);
    ask(
        &builder
            .middleware(FinishGuardMiddleware { safety: true })
            .build(),
        "go",
    )
    .await;
    let asked = model.asked();
    let names: Vec<_> = asked[2]
        .messages
        .iter()
        .rev()
        .take(3)
        .map(|message| message.name.as_deref().unwrap())
        .collect();
    assert_eq!((asked.len(), names), (3, vec![RECOVERY, "other", "look"]));
    assert!(asked[2].messages.iter().all(|message| !is_empty(message)));
}

/// Says something before each model call.
#[derive(Debug)]
struct Reminds;

#[async_trait]
impl Middleware for Reminds {
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
async fn a_model_that_says_nothing_twice_is_spoken_for() {
    let (said, model) = said(
        vec![calls([("c", "look", json!({}))]), Reply::Say("")],
        true,
    )
    .await;
    assert_eq!(model.asked().len(), 3);
    let last = said.state().messages().last().unwrap();
    assert!(last.flag(kwargs::ERROR_FALLBACK) && last.content.text() == SPEECHLESS);
    assert_eq!(
        said.state()
            .messages()
            .iter()
            .filter(|message| message.is_ai())
            .count(),
        2
    );
}

#[tokio::test]
async fn an_empty_answer_to_a_question_without_tools_stays() {
    let (said, model) = said(vec![Reply::Say("")], true).await;
    assert_eq!(
        (model.asked().len(), said.transcript()[1].as_str()),
        (1, "ai:")
    );
    assert!(
        is_empty(&Message::ai(" ")) && !is_empty(&state_of([Message::human("")]).messages()[0])
    );
}
