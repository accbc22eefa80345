//! The middleware: a summary before the model when one is due, and the short view in every request.

use std::collections::HashMap;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::Mutex;

use super::compact::Compactor;
use super::fit::fit;
use crate::ids::ThreadId;
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

/// How long a thread is left as it is after no model would summarize it: requests are made to fit meanwhile.
const REST: TimeDelta = TimeDelta::minutes(2);
/// Threads that rest.
const MOST_RESTING: usize = 1_000;

/// Shortens what the model sees; the thread keeps everything.
#[derive(Debug)]
pub struct SummarizationMiddleware {
    compactor: Compactor,
    /// Until when.
    resting: Mutex<HashMap<ThreadId, DateTime<Utc>>>,
}

impl SummarizationMiddleware {
    /// Shortens by these rules.
    pub fn new(compactor: Compactor) -> Self {
        Self {
            compactor,
            resting: Mutex::default(),
        }
    }

    fn rests(&self, ctx: &RunContext) -> bool {
        let now = ctx.clock.now();
        self.resting
            .lock()
            .get(&ctx.thread_id)
            .is_some_and(|until| now < *until)
    }

    fn let_rest(&self, ctx: &RunContext) {
        let now = ctx.clock.now();
        let mut resting = self.resting.lock();
        if resting.len() >= MOST_RESTING {
            resting.retain(|_, until| now < *until);
        }
        if resting.len() < MOST_RESTING {
            resting.insert(ctx.thread_id.clone(), now + REST);
        }
    }

    /// The tokens that messages may have beside all else in a request; no limit where the model's window is unknown.
    fn room(&self, request: &ModelRequest) -> Option<u64> {
        let policy = self.compactor.policy();
        let window = policy.window?;
        let schemas = request.tools.iter().map(|tool| {
            let parameters = serde_json::to_string(&tool.parameters).unwrap_or_default();
            TextSize::of(&tool.description).and(TextSize::of(&parameters))
        });
        let beside = schemas.sum::<TextSize>().and(
            request
                .system
                .as_deref()
                .map(TextSize::of)
                .unwrap_or_default(),
        );
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
        if self.rests(ctx) {
            return Ok(Default::default());
        }
        match self
            .compactor
            .when_due(state, Asker::within(ctx, CALLER))
            .await
        {
            Ok(compaction) => Ok(compaction
                .map(|done| done.update)
                .unwrap_or_default()
                .into()),
            Err(error) => {
                tracing::warn!(%error, thread_id = %ctx.thread_id, "a conversation could not be summarized; it is tried again in a while");
                self.let_rest(ctx);
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
