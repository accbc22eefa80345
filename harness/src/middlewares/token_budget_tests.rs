//! Tests of warnings and stops at token limits.

use super::*;
use crate::agents::AgentBuilder;
use crate::agents::test_support::{ReplayModel, Reply, ask, state_of};
use serde_json::Map;

use crate::messages::{
    MessageChunk, MessageKind, ToolCall, ToolCallChunk, ToolStatus, UsageMetadata,
};
use crate::middlewares::FinishGuardMiddleware;

fn calling(input: u64, output: u64) -> Reply {
    let usage = UsageMetadata {
        input_tokens: input,
        output_tokens: output,
        ..UsageMetadata::default()
    };
    let piece = ToolCallChunk {
        name: Some("look".into()),
        args: Some("{}".into()),
        id: Some("c".into()),
        index: 0,
        kind: "tool_call_chunk",
    };
    Reply::Chunk(Box::new(MessageChunk {
        usage_metadata: Some(usage),
        tool_call_chunks: vec![piece],
        ..MessageChunk::empty("")
    }))
}

#[tokio::test]
async fn budget_warns_once_and_stops_run_when_spent() {
    let budget: TokenBudgetConfig =
        serde_json::from_value(json!({"enabled": true, "max_tokens": 1_000})).unwrap();
    let model = ReplayModel::new([calling(200, 90)]);
    let agent = AgentBuilder::new(model.clone())
        .middleware(TokenBudgetMiddleware::new(budget))
        .build();
    let output = ask(&agent, "go").await;
    assert_eq!(
        output.outcome.as_ref().unwrap().stop_reason.as_deref(),
        Some("token_capped")
    );
    let requests = model.requests();
    assert_eq!(requests.len(), 4);
    let warned =
        |at: usize| requests[at].messages.last().unwrap().name.as_deref() == Some("budget_warning");
    assert_eq!((0..4).filter(|at| warned(*at)).collect::<Vec<_>>(), [3]);
    let last = output.state().messages().last().unwrap();
    assert_eq!(
        last.additional_kwargs[kwargs::RUN_USAGE]["total_tokens"],
        1_160
    );
    assert!(last.tool_calls().is_empty() && last.content.text() == SPENT);
}

#[tokio::test]
async fn answer_stopped_by_other_guard_keeps_reason() {
    let Reply::Chunk(mut chunk) = calling(2_000, 0) else {
        panic!("a chunk")
    };
    chunk
        .response_metadata
        .insert("finish_reason".to_owned(), json!("content_filter"));
    let budget: TokenBudgetConfig =
        serde_json::from_value(json!({"enabled": true, "max_tokens": 1_000})).unwrap();
    let builder = AgentBuilder::new(ReplayModel::new([Reply::Chunk(chunk)]))
        .middleware(TokenBudgetMiddleware::new(budget));
    let output = ask(
        &builder
            .middleware(FinishGuardMiddleware { safety: true })
            .build(),
        "go",
    )
    .await;
    assert_eq!(
        output.outcome.as_ref().unwrap().stop_reason.as_deref(),
        Some("safety_capped")
    );
    let last = output.state().messages().last().unwrap();
    assert!(
        !last.content.text().contains(SPENT)
            && last.additional_kwargs.contains_key(kwargs::RUN_USAGE)
    );
}

#[test]
fn nearest_limit_counts_and_new_question_resets() {
    let budget: TokenBudgetConfig =
        serde_json::from_value(json!({"max_output_tokens": 100})).unwrap();
    let share = TokenBudgetMiddleware::new(budget).share(TokenCount {
        input_tokens: 900,
        output_tokens: 50,
        total_tokens: 950,
    });
    assert!((share - 0.5).abs() < 1e-9);
    let counting = Message::ai("a").with(|body| {
        body.additional_kwargs.insert(
            kwargs::RUN_USAGE.to_owned(),
            json!(TokenCount {
                total_tokens: 7,
                ..TokenCount::default()
            }),
        );
    });
    let state = state_of([
        Message::human("q"),
        counting,
        Message::ai("x"),
        Message::human("next"),
        Message::ai("b"),
    ]);
    assert_eq!(spent(of_run(state.messages())), TokenCount::default());
    assert_eq!(spent(&state.messages()[..3]).total_tokens, 7);
    let uncounted = Message::ai("").with(|body| {
        let MessageKind::Ai { usage_metadata, .. } = &mut body.kind else {
            return;
        };
        *usage_metadata = Some(Box::new(UsageMetadata {
            total_tokens: 5,
            ..UsageMetadata::default()
        }));
    });
    let task = Message::tool(
        &ToolCall::new("t", "task", Map::new()),
        "r",
        ToolStatus::Success,
    )
    .with(|body| {
        let cost = json!(TokenCount {
            total_tokens: 100,
            ..TokenCount::default()
        });
        body.additional_kwargs
            .insert(kwargs::SUBAGENT_TOKEN_USAGE.to_owned(), cost);
    });
    let run = [
        state.messages()[1].clone(),
        uncounted,
        task,
        Message::ai("now"),
    ];
    assert_eq!(spent(before_last(&run)).total_tokens, 112);
}
