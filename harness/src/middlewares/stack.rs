//! Middlewares of one agent: the order of their hooks, and the chains around the model and the
//! tools.

use std::sync::Arc;

use super::hooks::{HookResult, Hooks, Phase};
use super::middleware::{Middleware, ModelHandler, ModelNext, ToolHandler, ToolNext};
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
    /// Creates a stack of these middlewares in this order.
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

    /// Iterates over the middlewares, the first outermost.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<dyn Middleware>> {
        self.all.iter()
    }

    /// Returns the indices of the middlewares with a hook in `phase`, in the order in which the
    /// hooks run.
    pub fn hooked(&self, phase: Phase) -> Vec<usize> {
        let mut indices: Vec<usize> = (0..self.all.len())
            .filter(|&at| self.all[at].hooks().has(phase.hook()))
            .collect();
        if phase.is_reversed() {
            indices.reverse();
        }
        indices
    }

    /// Returns the name of the middleware at this index.
    pub fn name(&self, at: usize) -> &str {
        self.all[at].name()
    }

    /// Runs the hook of one middleware.
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

    /// Returns the chain around a model call.
    pub fn model<'a>(&'a self, ctx: &'a RunContext, end: &'a dyn ModelHandler) -> ModelNext<'a> {
        ModelNext::new(&self.around_model, ctx, end)
    }

    /// Returns the chain around a tool call.
    pub fn tool<'a>(&'a self, end: &'a dyn ToolHandler) -> ToolNext<'a> {
        ToolNext::new(&self.around_tools, end)
    }
}
