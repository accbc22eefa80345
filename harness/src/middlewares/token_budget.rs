//! Limits the tokens of a run: the model is warned when most of the budget is spent, and the run is
//! stopped when all of it is.
//!
//! Each answer stores the run's usage up to it, so the sum survives summaries of the conversation
//! and failover.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;

use super::answers::{is_final, last_answer, of_run, reminder, stop_answer};
use super::hooks::{HookOutcome, HookResult, Hooks};
use super::middleware::{Middleware, ModelNext};
use super::subagent_usage::usage_of;
use crate::config::TokenBudgetConfig;
use crate::messages::{Message, UsageMetadata, kwargs};
use crate::models::{ModelError, ModelRequest};
use crate::runtime::agent::{RunContext, TokenCount};
use crate::state::{StateUpdate, ThreadState};

/// Stop reason of the run.
const TOKEN_CAPPED: &str = "token_capped";
/// Name of the warning message.
const WARNING: &str = "budget_warning";
/// Text for the user when the budget is spent.
const SPENT: &str = "I stopped here, because this run has used up its token budget. The text above is what I have so far.";

/// Enforces the token budget of a run.
#[derive(Debug, Clone, Default)]
pub struct TokenBudgetMiddleware {
    budget: TokenBudgetConfig,
}

impl TokenBudgetMiddleware {
    /// Creates the middleware with this budget for every run.
    pub fn new(budget: TokenBudgetConfig) -> Self {
        Self { budget }
    }

    /// Returns the fraction of the budget that is spent, for the limit that is closest.
    fn share(&self, spent: TokenCount) -> f64 {
        let share = |used: u64, limit: u64| used as f64 / limit.max(1) as f64;
        let limits = [
            Some(share(spent.total_tokens, self.budget.max_tokens)),
            self.budget
                .max_input_tokens
                .map(|limit| share(spent.input_tokens, limit)),
            self.budget
                .max_output_tokens
                .map(|limit| share(spent.output_tokens, limit)),
        ];
        limits.into_iter().flatten().fold(0.0, f64::max)
    }
}

/// Returns the run's usage up to this answer, as stored on it.
fn counted(answer: &Message) -> Option<TokenCount> {
    TokenCount::deserialize(answer.additional_kwargs.get(kwargs::RUN_USAGE)?).ok()
}

/// Returns the run's usage up to the end of these messages, including subagents and answers without
/// a stored sum.
fn spent(run: &[Message]) -> TokenCount {
    let newest = run
        .iter()
        .enumerate()
        .rev()
        .find_map(|(at, message)| Some((at + 1, counted(message)?)));
    let (from, so_far) = newest.unwrap_or_default();
    run[from..].iter().fold(so_far, with)
}

/// Adds the usage of an answer, or of the subagent that produced a result.
fn with(spent: TokenCount, message: &Message) -> TokenCount {
    let forgotten = message
        .additional_kwargs
        .get(kwargs::FORGOTTEN_USAGE)
        .and_then(|usage| UsageMetadata::deserialize(usage).ok());
    let spent = forgotten.iter().fold(spent, TokenCount::and);
    match (message.usage(), usage_of(message)) {
        (Some(usage), _) => spent.and(usage),
        (None, Some(cost)) => spent.plus(cost),
        (None, None) => spent,
    }
}

/// Returns the messages before the last answer.
fn before_last(run: &[Message]) -> &[Message] {
    &run[..run.iter().rposition(Message::is_ai).unwrap_or(0)]
}

#[async_trait]
impl Middleware for TokenBudgetMiddleware {
    fn name(&self) -> &str {
        "TokenBudgetMiddleware"
    }

    fn hooks(&self) -> Hooks {
        Hooks::WRAP_MODEL | Hooks::AFTER_MODEL
    }

    async fn wrap_model_call(
        &self,
        mut request: ModelRequest,
        _ctx: &RunContext,
        next: ModelNext<'_>,
    ) -> Result<Message, ModelError> {
        let run = of_run(&request.messages);
        let (before, now) = (self.share(spent(before_last(run))), self.share(spent(run)));
        // Only the answer that crosses the threshold triggers the warning, so it is added once.
        if now >= self.budget.warn_threshold && before < self.budget.warn_threshold {
            let text = format!(
                "{:.0} % of this run's tokens are spent. Come to an end: finish what matters most, and answer with what you have.",
                now * 100.0
            );
            request.messages.push(reminder(WARNING, &text));
        }
        next.run(request).await
    }

    async fn after_model(&self, state: &ThreadState, ctx: &RunContext) -> HookResult {
        let run = of_run(state.messages());
        let Some(answer) = last_answer(run).filter(|answer| answer.usage().is_some()) else {
            return Ok(HookOutcome::default());
        };
        let spent = with(spent(before_last(run)), answer);
        // An answer that another guard has stopped retains that guard's reason.
        let ends = is_final(answer) || answer.additional_kwargs.contains_key(kwargs::GUARD_STOP);
        let over = self.share(spent) >= self.budget.hard_stop_threshold && !ends;
        let answer_after = if over {
            stop_answer(answer, TOKEN_CAPPED, SPENT)
        } else {
            answer.clone()
        };
        let counted = answer_after.with(|body| {
            body.additional_kwargs
                .insert(kwargs::RUN_USAGE.to_owned(), json!(spent));
        });
        if over {
            tracing::warn!(run_id = %ctx.run_id, thread_id = %ctx.thread_id, tokens = spent.total_tokens, "token budget of the run exhausted");
        }
        Ok(HookOutcome {
            stop_reason: over.then(|| TOKEN_CAPPED.to_owned()),
            ..StateUpdate::messages([counted]).into()
        })
    }
}

#[cfg(test)]
#[path = "token_budget_tests.rs"]
mod tests;
