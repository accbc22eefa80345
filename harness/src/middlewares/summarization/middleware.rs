//! The middleware: a summary before the model when one is due, and the short view in every request.

use async_trait::async_trait;

use super::compact::Compactor;
use super::fit::fit;
use crate::messages::{Message, TextSize};
use crate::middlewares::middleware::{HookResult, Hooks, Middleware};
use crate::middlewares::next::ModelNext;
use crate::models::{Asker, ModelError, ModelRequest};
use crate::runtime::agent::RunContext;
use crate::state::ThreadState;

/// The name under which summaries count.
const CALLER: &str = "middleware:summarize";
/// The share of a window that is left for the answer.
const ANSWER_SHARE: u64 = 8;

/// Shortens what the model sees; the thread keeps everything.
#[derive(Debug, Clone)]
pub struct SummarizationMiddleware {
    compactor: Compactor,
}

impl SummarizationMiddleware {
    /// Shortens by these rules.
    pub fn new(compactor: Compactor) -> Self {
        Self { compactor }
    }

    /// The tokens that messages may have beside all else in a request; no limit where the model's window is unknown.
    fn room(&self, request: &ModelRequest) -> Option<u64> {
        let policy = self.compactor.policy();
        let window = policy.window?;
        let schemas = request.tools.iter().map(|tool| {
            let parameters = serde_json::to_string(&tool.parameters).unwrap_or_default();
            TextSize::of(&tool.description).and(TextSize::of(&parameters))
        });
        let beside = schemas.sum::<TextSize>().and(request.system.as_deref().map(TextSize::of).unwrap_or_default());
        Some((window - window / ANSWER_SHARE).saturating_sub(policy.family.tokens(beside)))
    }
}

#[async_trait]
impl Middleware for SummarizationMiddleware {
    fn name(&self) -> &str {
        "SummarizationMiddleware"
    }

    fn hooks(&self) -> Hooks {
        Hooks::BEFORE_MODEL | Hooks::WRAP_MODEL
    }

    async fn before_model(&self, state: &ThreadState, ctx: &RunContext) -> HookResult {
        match self.compactor.when_due(state, Asker::within(ctx, CALLER)).await {
            Ok(compaction) => Ok(compaction.map(|done| done.update).unwrap_or_default().into()),
            Err(error) => {
                tracing::warn!(%error, thread_id = %ctx.thread_id, "a conversation could not be summarized; the next step tries again");
                Ok(Default::default())
            }
        }
    }

    async fn wrap_model_call(&self, mut request: ModelRequest, _ctx: &RunContext, next: ModelNext<'_>) -> Result<Message, ModelError> {
        if let Some(room) = self.room(&request) {
            request.messages = fit(request.messages, room, self.compactor.policy().family);
        }
        next.run(request).await
    }
}
