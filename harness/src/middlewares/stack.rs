//! The middlewares of one agent: which hooks run when, and the nests around the model and the tools.

use std::sync::Arc;

use super::middleware::{HookResult, Hooks, Middleware, Phase};
use super::next::{ModelEnd, ModelNext, ToolEnd, ToolNext};
use crate::runtime::agent::RunContext;
use crate::state::ThreadState;

/// Middlewares in order, the first outermost.
#[derive(Debug, Clone, Default)]
pub struct MiddlewareStack {
    all: Vec<Arc<dyn Middleware>>,
    around_model: Vec<Arc<dyn Middleware>>,
    around_tools: Vec<Arc<dyn Middleware>>,
}

impl MiddlewareStack {
    /// A stack of these, in this order.
    pub fn new(all: Vec<Arc<dyn Middleware>>) -> Self {
        let with = |hook| {
            all.iter()
                .filter(|middleware| middleware.hooks().has(hook))
                .cloned()
                .collect()
        };
        Self {
            around_model: with(Hooks::WRAP_MODEL),
            around_tools: with(Hooks::WRAP_TOOL),
            all,
        }
    }

    /// The middlewares, the first outermost.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<dyn Middleware>> {
        self.all.iter()
    }

    /// The places in the stack whose middlewares have a hook in `phase`, in the order in which the hooks run.
    pub fn hooked(&self, phase: Phase) -> Vec<usize> {
        let mut places: Vec<usize> = (0..self.all.len())
            .filter(|&at| self.all[at].hooks().has(phase.hook()))
            .collect();
        if phase.is_reversed() {
            places.reverse();
        }
        places
    }

    /// The name of the middleware at this place of the stack.
    pub fn name(&self, at: usize) -> &str {
        self.all[at].name()
    }

    /// Runs one hook.
    pub async fn hook(
        &self,
        phase: Phase,
        at: usize,
        state: &ThreadState,
        ctx: &RunContext,
    ) -> HookResult {
        let middleware = &self.all[at];
        match phase {
            Phase::BeforeAgent => middleware.before_agent(state, ctx).await,
            Phase::BeforeModel => middleware.before_model(state, ctx).await,
            Phase::AfterModel => middleware.after_model(state, ctx).await,
            Phase::AfterAgent => middleware.after_agent(state, ctx).await,
        }
    }

    /// The nest around a model call.
    pub fn model<'a>(&'a self, ctx: &'a RunContext, end: &'a dyn ModelEnd) -> ModelNext<'a> {
        ModelNext::new(&self.around_model, ctx, end)
    }

    /// The nest around a tool call.
    pub fn tool<'a>(&'a self, end: &'a dyn ToolEnd) -> ToolNext<'a> {
        ToolNext::new(&self.around_tools, end)
    }
}
