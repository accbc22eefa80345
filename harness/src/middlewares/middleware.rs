//! The trait of a middleware, and what its hooks give back.

use std::fmt;
use std::ops::BitOr;

use async_trait::async_trait;

use super::next::{ModelNext, ToolNext};
use crate::messages::{Message, ToolCall};
use crate::models::{ModelError, ModelRequest};
use crate::runtime::agent::{AgentError, InputFacts, RunContext};
use crate::state::{StateUpdate, ThreadState};
use crate::tools::{ToolContext, ToolError, ToolOutput};

/// Something that takes part in an agent's loop without being the model or a tool.
///
/// To write one: a struct, `impl Middleware` with the hooks it needs, and those same hooks named in [`Middleware::hooks`],
/// for only those are called. One value serves every run of an agent, so what belongs to a run lives in the thread's state.
/// The state's channels are fixed ([`CHANNELS`](crate::state::CHANNELS)): a middleware cannot add one.
#[async_trait]
pub trait Middleware: Send + Sync + fmt::Debug + 'static {
    /// Its name, such as `TitleMiddleware`. Its nodes are `<name>.before_model` and so on.
    fn name(&self) -> &str;

    /// The hooks it has.
    fn hooks(&self) -> Hooks;

    /// Completes the user's message that a run begins with, before it is stored for the first time. `None` leaves it as it is.
    /// Called for every middleware, without a hook being named.
    fn complete_input(&self, _message: &Message, _facts: &InputFacts) -> Option<Message> {
        None
    }

    /// Once per run, before the first model call.
    async fn before_agent(&self, _state: &ThreadState, _ctx: &RunContext) -> HookResult {
        Ok(HookOutcome::default())
    }

    /// Before every model call.
    async fn before_model(&self, _state: &ThreadState, _ctx: &RunContext) -> HookResult {
        Ok(HookOutcome::default())
    }

    /// After every model call; the last middleware first.
    async fn after_model(&self, _state: &ThreadState, _ctx: &RunContext) -> HookResult {
        Ok(HookOutcome::default())
    }

    /// Once per run, when it is about to end; the last middleware first.
    async fn after_agent(&self, _state: &ThreadState, _ctx: &RunContext) -> HookResult {
        Ok(HookOutcome::default())
    }

    /// Around every model call; the first middleware is outermost. Changes to the request do not touch the state.
    async fn wrap_model_call(
        &self,
        request: ModelRequest,
        _ctx: &RunContext,
        next: ModelNext<'_>,
    ) -> Result<Message, ModelError> {
        next.run(request).await
    }

    /// Around every tool call; the first middleware is outermost.
    async fn wrap_tool_call(
        &self,
        call: &ToolCall,
        ctx: &ToolContext,
        next: ToolNext<'_>,
    ) -> Result<ToolOutput, ToolError> {
        next.run(call, ctx).await
    }

    /// What a run that was cut off should still write, besides the partial answer.
    fn settle(&self, _state: &ThreadState, _partial: Option<&Message>) -> StateUpdate {
        StateUpdate::default()
    }
}

/// What a hook gives back.
pub type HookResult = Result<HookOutcome, AgentError>;

/// What a hook wants.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HookOutcome {
    /// Changes to the state; an empty update leaves no trace in the stream.
    pub update: StateUpdate,
    /// Where the loop goes instead of on; the rest of the phase is skipped.
    pub jump: Option<Jump>,
    /// Why a guard ends the run early, such as `loop_capped`.
    pub stop_reason: Option<String>,
}

impl HookOutcome {
    /// The same with a jump.
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

/// Where a hook can send the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Jump {
    /// To the loop's entry: `before_model` hooks, then the model.
    Model,
    /// There too, as in another run: super-steps are counted anew, so the hook must know when it is enough.
    Again,
    /// To the tools, when calls are pending; otherwise on as usual.
    Tools,
    /// To the end of the run.
    End,
}

/// The phases that hooks belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Before everything.
    BeforeAgent,
    /// Before the model.
    BeforeModel,
    /// After the model.
    AfterModel,
    /// After everything.
    AfterAgent,
}

impl Phase {
    /// All phases, in the order of a run.
    pub const ALL: [Self; 4] = [
        Self::BeforeAgent,
        Self::BeforeModel,
        Self::AfterModel,
        Self::AfterAgent,
    ];

    /// The hook's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BeforeAgent => "before_agent",
            Self::BeforeModel => "before_model",
            Self::AfterModel => "after_model",
            Self::AfterAgent => "after_agent",
        }
    }

    /// Whether the last middleware comes first.
    pub fn is_reversed(self) -> bool {
        matches!(self, Self::AfterModel | Self::AfterAgent)
    }

    /// The flag of this phase's hook.
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
    /// No hook.
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

    /// Whether every hook of `other` is in the set.
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
