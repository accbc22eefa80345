//! The middleware trait and the results of its hooks.

use std::fmt;
use std::ops::BitOr;

use async_trait::async_trait;

use super::next::{ModelNext, ToolNext};
use crate::messages::{Message, ToolCall};
use crate::models::{ModelError, ModelRequest};
use crate::runtime::agent::{AgentError, InputFacts, RunContext};
use crate::state::{StateUpdate, ThreadState};
use crate::tools::{ToolContext, ToolError, ToolOutput};

/// Extension of an agent's loop, next to the model and the tools.
///
/// To write one: a struct, `impl Middleware` with the hooks it needs, and the same hooks in
/// [`Middleware::hooks`], because only those are called. One value serves all runs of an agent, so
/// state of a run belongs in the thread's state. The state's channels are fixed
/// ([`CHANNELS`](crate::state::CHANNELS)): a middleware cannot add one.
#[async_trait]
pub trait Middleware: Send + Sync + fmt::Debug + 'static {
    /// Name of the middleware, such as `TitleMiddleware`. Its nodes are named `<name>.before_model`
    /// and so on.
    fn name(&self) -> &str;

    /// Hooks that the middleware implements.
    fn hooks(&self) -> Hooks;

    /// Completes the user's message at the start of a run, before the message is stored for the
    /// first time. `None` leaves it unchanged. Called for every middleware, independently of
    /// [`Middleware::hooks`].
    fn complete_input(&self, _message: &Message, _facts: &InputFacts) -> Option<Message> {
        None
    }

    /// Runs once per run, before the first model call.
    async fn before_agent(&self, _state: &ThreadState, _ctx: &RunContext) -> HookResult {
        Ok(HookOutcome::default())
    }

    /// Runs before every model call.
    async fn before_model(&self, _state: &ThreadState, _ctx: &RunContext) -> HookResult {
        Ok(HookOutcome::default())
    }

    /// Runs after every model call, in reverse order of the middlewares.
    async fn after_model(&self, _state: &ThreadState, _ctx: &RunContext) -> HookResult {
        Ok(HookOutcome::default())
    }

    /// Runs once per run, before it ends, in reverse order of the middlewares.
    async fn after_agent(&self, _state: &ThreadState, _ctx: &RunContext) -> HookResult {
        Ok(HookOutcome::default())
    }

    /// Wraps every model call; the first middleware is the outermost. Changes to the request do not
    /// change the state.
    async fn wrap_model_call(
        &self,
        request: ModelRequest,
        _ctx: &RunContext,
        next: ModelNext<'_>,
    ) -> Result<Message, ModelError> {
        next.run(request).await
    }

    /// Wraps every tool call; the first middleware is the outermost.
    async fn wrap_tool_call(
        &self,
        call: &ToolCall,
        ctx: &ToolContext,
        next: ToolNext<'_>,
    ) -> Result<ToolOutput, ToolError> {
        next.run(call, ctx).await
    }

    /// Returns the last state changes of an interrupted run, in addition to the partial answer.
    fn settle(&self, _state: &ThreadState, _partial: Option<&Message>) -> StateUpdate {
        StateUpdate::default()
    }
}

/// Result of a hook.
pub type HookResult = Result<HookOutcome, AgentError>;

/// State changes and control flow that a hook requests.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HookOutcome {
    /// State changes; an empty update is not streamed.
    pub update: StateUpdate,
    /// Step at which the loop continues; the remaining hooks of the phase are skipped.
    pub jump: Option<Jump>,
    /// Reason for a guard to end the run early, such as `loop_capped`.
    pub stop_reason: Option<String>,
}

impl HookOutcome {
    /// Returns the outcome with a jump.
    #[must_use]
    pub fn jump(mut self, to: Jump) -> Self {
        self.jump = Some(to);
        self
    }
}

impl From<StateUpdate> for HookOutcome {
    fn from(update: StateUpdate) -> Self {
        Self {
            update,
            ..Self::default()
        }
    }
}

/// Target to which a hook can send the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Jump {
    /// Entry of the loop: `before_model` hooks, then the model.
    Model,
    /// Entry of the loop with a fresh super-step counter, as in a new run. The hook must limit how
    /// often it does this.
    Again,
    /// Tools, if calls are pending; otherwise no jump.
    Tools,
    /// End of the run.
    End,
}

/// Phase of a run in which hooks are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Before the run.
    BeforeAgent,
    /// Before a model call.
    BeforeModel,
    /// After a model call.
    AfterModel,
    /// Before the end of the run.
    AfterAgent,
}

impl Phase {
    /// All phases in the order of a run.
    pub const ALL: [Self; 4] = [
        Self::BeforeAgent,
        Self::BeforeModel,
        Self::AfterModel,
        Self::AfterAgent,
    ];

    /// Name of the phase's hook.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BeforeAgent => "before_agent",
            Self::BeforeModel => "before_model",
            Self::AfterModel => "after_model",
            Self::AfterAgent => "after_agent",
        }
    }

    /// Reports whether the hooks run in reverse order of the middlewares.
    pub fn is_reversed(self) -> bool {
        matches!(self, Self::AfterModel | Self::AfterAgent)
    }

    /// Flag of the phase's hook.
    pub fn hook(self) -> Hooks {
        match self {
            Self::BeforeAgent => Hooks::BEFORE_AGENT,
            Self::BeforeModel => Hooks::BEFORE_MODEL,
            Self::AfterModel => Hooks::AFTER_MODEL,
            Self::AfterAgent => Hooks::AFTER_AGENT,
        }
    }
}

/// A set of hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hooks(u8);

impl Hooks {
    /// Empty set.
    pub const NONE: Self = Self(0);
    /// [`Middleware::before_agent`].
    pub const BEFORE_AGENT: Self = Self(1);
    /// [`Middleware::before_model`].
    pub const BEFORE_MODEL: Self = Self(1 << 1);
    /// [`Middleware::after_model`].
    pub const AFTER_MODEL: Self = Self(1 << 2);
    /// [`Middleware::after_agent`].
    pub const AFTER_AGENT: Self = Self(1 << 3);
    /// [`Middleware::wrap_model_call`].
    pub const WRAP_MODEL: Self = Self(1 << 4);
    /// [`Middleware::wrap_tool_call`].
    pub const WRAP_TOOL: Self = Self(1 << 5);

    /// Reports whether the set contains all hooks of `other`.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Hooks {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
