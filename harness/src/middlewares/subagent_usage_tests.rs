//! Tests of the attribution of subagent usage to answers.

use serde_json::{Map, json};

use super::*;
use crate::messages::{ToolCall, ToolStatus};

fn answer(id: &str, calls: &[&str], total: u64) -> Message {
    Message::ai("a").with(|body| {
        body.id = Some(id.to_owned());
        let MessageKind::Ai {
            tool_calls,
            usage_metadata,
            ..
        } = &mut body.kind
        else {
            return;
        };
        *tool_calls = calls
            .iter()
            .map(|id| ToolCall::new(*id, "task", Map::new()))
            .collect();
        *usage_metadata = Some(Box::new(UsageMetadata {
            input_tokens: total - 1,
            output_tokens: 1,
            ..UsageMetadata::default()
        }));
    })
}

fn result(call: &str, total: u64) -> Message {
    Message::tool(
        &ToolCall::new(call, "task", Map::new()),
        "r",
        ToolStatus::Success,
    )
    .with(|body| {
        let usage = json!(TokenCount {
            input_tokens: total - 2,
            output_tokens: 2,
            total_tokens: total
        });
        body.additional_kwargs
            .insert(kwargs::SUBAGENT_TOKEN_USAGE.to_owned(), usage);
    })
}

#[test]
fn subagent_usage_is_attributed_once_per_answer() {
    let mut run = vec![
        answer("1", &["a", "b"], 10),
        result("a", 100),
        result("b", 30),
    ];
    assert_eq!(attributed(&run), [], "not before the next answer");
    run.push(answer("2", &[], 7));
    let charged = attributed(&run);
    let usage = charged[0].usage().unwrap();
    assert_eq!(
        (
            charged.len(),
            usage.input_tokens,
            usage.output_tokens,
            usage.total_tokens
        ),
        (1, 9 + 98 + 28, 5, 140)
    );
    run[0] = charged[0].clone();
    assert_eq!(attributed(&run), []);
}

#[test]
fn ordinary_calls_add_no_usage() {
    let plain = Message::tool(
        &ToolCall::new("a", "ls", Map::new()),
        "r",
        ToolStatus::Success,
    );
    assert_eq!(
        attributed(&[answer("1", &["a"], 10), plain, answer("2", &[], 5)]),
        []
    );
}
