//! Hooks of a middleware: which it implements, when they run, and what they return.

use std::ops::BitOr;

use crate::runtime::agent::AgentError;
use crate::state::StateUpdate;

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
    /// [`Middleware::before_agent`](super::Middleware::before_agent).
    pub const BEFORE_AGENT: Self = Self(1);
    /// [`Middleware::before_model`](super::Middleware::before_model).
    pub const BEFORE_MODEL: Self = Self(1 << 1);
    /// [`Middleware::after_model`](super::Middleware::after_model).
    pub const AFTER_MODEL: Self = Self(1 << 2);
    /// [`Middleware::after_agent`](super::Middleware::after_agent).
    pub const AFTER_AGENT: Self = Self(1 << 3);
    /// [`Middleware::wrap_model_call`](super::Middleware::wrap_model_call).
    pub const WRAP_MODEL: Self = Self(1 << 4);
    /// [`Middleware::wrap_tool_call`](super::Middleware::wrap_tool_call).
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
