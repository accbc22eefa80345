//! Middleware that writes a summary before a model call if the policy requires one, and fits every
//! request into the window.

use std::collections::HashMap;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::Mutex;

use super::compact::Compactor;
use super::fit::fit;
use crate::ids::ThreadId;
use crate::messages::{Message, TextSize};
use crate::middlewares::hooks::{HookResult, Hooks};
use crate::middlewares::middleware::{Middleware, ModelNext};
use crate::models::{Caller, ModelError, ModelRequest};
use crate::runtime::agent::RunContext;
use crate::state::ThreadState;

/// Caller name under which usage for summaries is recorded.
const CALLER: &str = "middleware:summarize";
/// Divisor for the share of the window that is reserved for the answer.
const ANSWER_SHARE: u64 = 8;

/// Cooldown of a thread after a failed summary; requests are fitted meanwhile.
const COOLDOWN: TimeDelta = TimeDelta::minutes(2);
/// Maximum number of threads in cooldown.
const MAX_COOLDOWNS: usize = 1_000;

/// Compacts what the model sees; the thread retains all messages.
#[derive(Debug)]
pub struct SummarizationMiddleware {
    compactor: Compactor,
    /// End of the cooldown per thread.
    cooldowns: Mutex<HashMap<ThreadId, DateTime<Utc>>>,
}

impl SummarizationMiddleware {
    /// Creates the middleware with this compactor.
    pub fn new(compactor: Compactor) -> Self {
        Self {
            compactor,
            cooldowns: Mutex::default(),
        }
    }

    fn is_cooling_down(&self, ctx: &RunContext) -> bool {
        let now = ctx.clock.now();
        self.cooldowns
            .lock()
            .get(&ctx.thread_id)
            .is_some_and(|until| now < *until)
    }

    fn start_cooldown(&self, ctx: &RunContext) {
        let now = ctx.clock.now();
        let mut cooldowns = self.cooldowns.lock();
        if cooldowns.len() >= MAX_COOLDOWNS {
            cooldowns.retain(|_, until| now < *until);
        }
        if cooldowns.len() < MAX_COOLDOWNS {
            cooldowns.insert(ctx.thread_id.clone(), now + COOLDOWN);
        }
    }

    /// Returns the tokens available for messages in a request; `None` if the model's window is
    /// unknown.
    fn room(&self, request: &ModelRequest) -> Option<u64> {
        let policy = self.compactor.policy();
        let window = policy.window?;
        let schemas = request.tools.iter().map(|tool| {
            let parameters = serde_json::to_string(&tool.parameters).unwrap_or_default();
            TextSize::of(&tool.description).and(TextSize::of(&parameters))
        });
        let other = schemas.sum::<TextSize>().and(
            request
                .system
                .as_deref()
                .map(TextSize::of)
                .unwrap_or_default(),
        );
        Some((window - window / ANSWER_SHARE).saturating_sub(policy.family.tokens(other)))
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
        if self.is_cooling_down(ctx) {
            return Ok(Default::default());
        }
        match self
            .compactor
            .when_due(state, Caller::within(ctx, CALLER))
            .await
        {
            Ok(compaction) => Ok(compaction
                .map(|compaction| compaction.update)
                .unwrap_or_default()
                .into()),
            Err(error) => {
                tracing::warn!(%error, thread_id = %ctx.thread_id, "cannot summarize the thread, trying again after a cooldown");
                self.start_cooldown(ctx);
                Ok(Default::default())
            }
        }
    }

    async fn wrap_model_call(
        &self,
        mut request: ModelRequest,
        _ctx: &RunContext,
        next: ModelNext<'_>,
    ) -> Result<Message, ModelError> {
        if let Some(room) = self.room(&request) {
            request.messages = fit(request.messages, room, self.compactor.policy().family);
        }
        next.run(request).await
    }
}
