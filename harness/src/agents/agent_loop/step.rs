//! Steps that the loop machine requests, their outcomes, and the limits of a run.

use super::calls::PendingCall;
use super::interrupts::NewInterrupt;
use crate::middlewares::Phase;
use crate::runtime::agent::StopKind;
use crate::runtime::runs::NodeSelector;

/// Next step of the loop.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Run a hook of the middleware at `index` of the stack, then call
    /// [`LoopMachine::hook_done`](super::LoopMachine::hook_done).
    Hook {
        /// Phase of the hook.
        phase: Phase,
        /// Index of the middleware in the stack.
        index: usize,
    },
    /// Call the model, reduce its answer into the state, then call
    /// [`LoopMachine::model_done`](super::LoopMachine::model_done).
    CallModel,
    /// Execute these calls, reduce their results into the state, then call
    /// [`LoopMachine::tools_done`](super::LoopMachine::tools_done).
    CallTools(Vec<PendingCall>),
    /// Stop the run.
    Stop(StopKind),
    /// Fail the run: the recursion limit is exceeded.
    RecursionExceeded(u64),
}

/// Outcome of a tool batch.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolsDone {
    /// A tool requested the end of the run.
    pub goto_end: bool,
    /// `true` if the result of every known tool that ended is the run's result; `None` if none has
    /// ended.
    pub all_return_direct: Option<bool>,
    /// Questions of calls that interrupt the run instead of returning a result.
    pub questions: Vec<NewInterrupt>,
}

/// Limits of a run; not part of the saved machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunBounds {
    /// Maximum number of super-steps of the run.
    pub recursion_limit: u64,
    /// Stop before these nodes.
    pub interrupt_before: NodeSelector,
    /// Stop after these nodes.
    pub interrupt_after: NodeSelector,
}
