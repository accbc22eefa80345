//! Adds what subagents have cost to the answer that set them to work, once, as the interface shows costs by answer.

use async_trait::async_trait;
use serde::Deserialize;

use super::answers::of_run;
use super::middleware::{HookResult, Hooks, Middleware};
use crate::messages::{Message, MessageKind, UsageMetadata, kwargs};
use crate::runtime::agent::{RunContext, TokenCount};
use crate::state::{StateUpdate, ThreadState};

/// Books subagents on the answers that called them.
///
/// It does so when the next answer is there: until then the newest answer tells how long the conversation is.
#[derive(Debug, Clone, Copy, Default)]
pub struct SubagentUsageMiddleware;

#[async_trait]
impl Middleware for SubagentUsageMiddleware {
    fn name(&self) -> &str {
        "SubagentUsageMiddleware"
    }

    fn hooks(&self) -> Hooks {
        Hooks::AFTER_MODEL
    }

    async fn after_model(&self, state: &ThreadState, _ctx: &RunContext) -> HookResult {
        Ok(StateUpdate::messages(booked(of_run(state.messages()))).into())
    }
}

/// What the subagent of a result has cost.
pub(super) fn usage_of(result: &Message) -> Option<TokenCount> {
    TokenCount::deserialize(result.additional_kwargs.get(kwargs::SUBAGENT_TOKEN_USAGE)?).ok()
}

/// The answers before the last one whose subagents are not booked yet, with what those have cost.
fn booked(run: &[Message]) -> Vec<Message> {
    let Some(last) = run.iter().rposition(Message::is_ai) else {
        return Vec::new();
    };
    let is_open = |message: &Message| {
        message.usage().is_some() && !message.flag(kwargs::SUBAGENT_USAGE_ATTRIBUTED)
    };
    let answers = run[..last]
        .iter()
        .filter(|message| is_open(message) && !message.tool_calls().is_empty());
    let booked = answers.filter_map(|answer| {
        let is_called = |result: &&Message| {
            answer
                .tool_calls()
                .iter()
                .any(|call| result.tool_call_id() == Some(&call.id))
        };
        let costs: Vec<TokenCount> = run.iter().filter(is_called).filter_map(usage_of).collect();
        (!costs.is_empty()).then(|| costing(answer, &costs))
    });
    booked.collect()
}

fn costing(answer: &Message, costs: &[TokenCount]) -> Message {
    answer.with(|body| {
        let MessageKind::Ai {
            usage_metadata: Some(usage),
            ..
        } = &mut body.kind
        else {
            return;
        };
        let sum = costs
            .iter()
            .fold(TokenCount::default().and(usage), |sum, cost| {
                sum.plus(*cost)
            });
        let TokenCount {
            input_tokens,
            output_tokens,
            total_tokens,
        } = sum;
        *usage = UsageMetadata {
            input_tokens,
            output_tokens,
            total_tokens,
            ..std::mem::take(usage)
        };
        body.additional_kwargs
            .insert(kwargs::SUBAGENT_USAGE_ATTRIBUTED.to_owned(), true.into());
    })
}

#[cfg(test)]
mod tests {
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
            *usage_metadata = Some(UsageMetadata {
                input_tokens: total - 1,
                output_tokens: 1,
                ..UsageMetadata::default()
            });
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
    fn each_answer_is_charged_once_for_all_that_it_called() {
        let mut run = vec![
            answer("1", &["a", "b"], 10),
            result("a", 100),
            result("b", 30),
        ];
        assert_eq!(booked(&run), [], "not before the next answer");
        run.push(answer("2", &[], 7));
        let charged = booked(&run);
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
        assert_eq!(booked(&run), []);
    }

    #[test]
    fn ordinary_calls_cost_nothing_more() {
        let plain = Message::tool(
            &ToolCall::new("a", "ls", Map::new()),
            "r",
            ToolStatus::Success,
        );
        assert_eq!(
            booked(&[answer("1", &["a"], 10), plain, answer("2", &[], 5)]),
            []
        );
    }
}
