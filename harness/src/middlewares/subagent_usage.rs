//! Adds the token usage of subagents once to the answer that started them, because the interface
//! shows usage per answer.

use async_trait::async_trait;
use serde::Deserialize;

use super::answers::of_run;
use super::hooks::{HookResult, Hooks};
use super::middleware::Middleware;
use crate::messages::{Message, MessageKind, UsageMetadata, kwargs};
use crate::runtime::agent::{RunContext, TokenCount};
use crate::state::{StateUpdate, ThreadState};

/// Attributes the usage of subagents to the answers that started them.
///
/// An answer is updated only after the next answer exists, because the usage of the newest answer
/// is used as the length of the conversation.
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
        Ok(StateUpdate::messages(attributed(of_run(state.messages()))).into())
    }
}

/// Returns the token usage of the subagent that produced a result.
pub(super) fn usage_of(result: &Message) -> Option<TokenCount> {
    TokenCount::deserialize(result.additional_kwargs.get(kwargs::SUBAGENT_TOKEN_USAGE)?).ok()
}

/// Returns the answers before the last one that have unattributed subagent usage, with that usage
/// added.
fn attributed(run: &[Message]) -> Vec<Message> {
    let Some(last) = run.iter().rposition(Message::is_ai) else {
        return Vec::new();
    };
    let is_open = |message: &Message| {
        message.usage().is_some() && !message.flag(kwargs::SUBAGENT_USAGE_ATTRIBUTED)
    };
    let answers = run[..last]
        .iter()
        .filter(|message| is_open(message) && !message.tool_calls().is_empty());
    let attributed = answers.filter_map(|answer| {
        let is_called = |result: &&Message| {
            answer
                .tool_calls()
                .iter()
                .any(|call| result.tool_call_id() == Some(&call.id))
        };
        let costs: Vec<TokenCount> = run.iter().filter(is_called).filter_map(usage_of).collect();
        (!costs.is_empty()).then(|| with_usage(answer, &costs))
    });
    attributed.collect()
}

fn with_usage(answer: &Message, costs: &[TokenCount]) -> Message {
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
        **usage = UsageMetadata {
            input_tokens,
            output_tokens,
            total_tokens,
            ..std::mem::take(&mut **usage)
        };
        body.additional_kwargs
            .insert(kwargs::SUBAGENT_USAGE_ATTRIBUTED.to_owned(), true.into());
    })
}

#[cfg(test)]
#[path = "subagent_usage_tests.rs"]
mod tests;
