//! Bounds what a run costs: the model is told when most of its tokens are spent, and stopped when all of them are.
//!
//! Each answer carries what the run has spent up to it, so the sum outlives summaries of the conversation and processes.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::json;

use super::answers::{is_final, last_answer, of_run, reminder, stopped};
use super::middleware::{HookOutcome, HookResult, Hooks, Middleware};
use super::next::ModelNext;
use super::subagent_usage::usage_of;
use crate::config::TokenBudgetConfig;
use crate::messages::{Message, UsageMetadata, kwargs};
use crate::models::{ModelError, ModelRequest};
use crate::runtime::agent::{RunContext, TokenCount};
use crate::state::{StateUpdate, ThreadState};

/// Why the run ended.
const TOKEN_CAPPED: &str = "token_capped";
/// The name of the warning.
const WARNING: &str = "budget_warning";
/// What the user reads when the budget is spent.
const SPENT: &str = "I stopped here, because this run has used up its token budget. What stands above is what I have so far.";

/// Keeps a run within its budget.
#[derive(Debug, Clone, Default)]
pub struct TokenBudgetMiddleware {
    budget: TokenBudgetConfig,
}

impl TokenBudgetMiddleware {
    /// With this budget for every run.
    pub fn new(budget: TokenBudgetConfig) -> Self {
        Self { budget }
    }

    /// The share of the budget that is spent, of whichever limit is nearest.
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

/// What the run had spent when it gave this answer.
fn counted(answer: &Message) -> Option<TokenCount> {
    TokenCount::deserialize(answer.additional_kwargs.get(kwargs::RUN_USAGE)?).ok()
}

/// What the run has spent by the end of these messages, subagents included. Answers that nobody counted yet count, too.
fn spent(run: &[Message]) -> TokenCount {
    let newest = run
        .iter()
        .enumerate()
        .rev()
        .find_map(|(at, message)| Some((at + 1, counted(message)?)));
    let (from, so_far) = newest.unwrap_or_default();
    run[from..].iter().fold(so_far, with)
}

/// With what an answer has cost, or the subagent of a result.
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

/// The messages before the last answer.
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
        // Only the answer that crosses the line brings the warning, so it is given once.
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
        // An answer that another guard stopped keeps the reason it has.
        let ends = is_final(answer) || answer.additional_kwargs.contains_key(kwargs::GUARD_STOP);
        let over = self.share(spent) >= self.budget.hard_stop_threshold && !ends;
        let judged = if over {
            stopped(answer, TOKEN_CAPPED, SPENT)
        } else {
            answer.clone()
        };
        let counted = judged.with(|body| {
            body.additional_kwargs
                .insert(kwargs::RUN_USAGE.to_owned(), json!(spent));
        });
        if over {
            tracing::warn!(run_id = %ctx.run_id, thread_id = %ctx.thread_id, tokens = spent.total_tokens, "a run has spent its tokens");
        }
        Ok(HookOutcome {
            stop_reason: over.then(|| TOKEN_CAPPED.to_owned()),
            ..StateUpdate::messages([counted]).into()
        })
    }
}

#[cfg(test)]
mod tests {
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
    async fn a_run_is_told_once_and_stopped_when_its_tokens_are_spent() {
        let budget = TokenBudgetConfig {
            enabled: true,
            max_tokens: 1_000,
            ..TokenBudgetConfig::default()
        };
        let model = ReplayModel::new([calling(200, 90)]);
        let agent = AgentBuilder::new(model.clone())
            .middleware(TokenBudgetMiddleware::new(budget))
            .build();
        let said = ask(&agent, "go").await;
        assert_eq!(
            said.outcome.as_ref().unwrap().stop_reason.as_deref(),
            Some("token_capped")
        );
        let asked = model.asked();
        assert_eq!(asked.len(), 4);
        let warned = |at: usize| {
            asked[at].messages.last().unwrap().name.as_deref() == Some("budget_warning")
        };
        assert_eq!((0..4).filter(|at| warned(*at)).collect::<Vec<_>>(), [3]);
        let last = said.state().messages().last().unwrap();
        assert_eq!(
            last.additional_kwargs[kwargs::RUN_USAGE]["total_tokens"],
            1_160
        );
        assert!(last.tool_calls().is_empty() && last.content.text() == SPENT);
    }

    #[tokio::test]
    async fn an_answer_that_another_guard_stopped_keeps_its_reason() {
        let Reply::Chunk(mut chunk) = calling(2_000, 0) else {
            panic!("a chunk")
        };
        chunk
            .response_metadata
            .insert("finish_reason".to_owned(), json!("content_filter"));
        let budget = TokenBudgetConfig {
            enabled: true,
            max_tokens: 1_000,
            ..TokenBudgetConfig::default()
        };
        let builder = AgentBuilder::new(ReplayModel::new([Reply::Chunk(chunk)]))
            .middleware(TokenBudgetMiddleware::new(budget));
        let said = ask(
            &builder
                .middleware(FinishGuardMiddleware { safety: true })
                .build(),
            "go",
        )
        .await;
        assert_eq!(
            said.outcome.as_ref().unwrap().stop_reason.as_deref(),
            Some("safety_capped")
        );
        let last = said.state().messages().last().unwrap();
        assert!(
            !last.content.text().contains(SPENT)
                && last.additional_kwargs.contains_key(kwargs::RUN_USAGE)
        );
    }

    #[test]
    fn the_nearest_limit_counts_and_a_new_question_begins_at_nothing() {
        let budget = TokenBudgetConfig {
            max_output_tokens: Some(100),
            ..TokenBudgetConfig::default()
        };
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
            *usage_metadata = Some(UsageMetadata {
                total_tokens: 5,
                ..UsageMetadata::default()
            });
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
}
