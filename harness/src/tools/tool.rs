//! The trait a tool's author writes.
//!
//! A tool in four steps: a struct for the tool, a `Deserialize + JsonSchema` struct for its arguments (doc comments become the
//! parameters' descriptions), `impl Tool`, and `registry.add(MyTool)`. One that may be made again says so with [`Tool::effect`].

use std::future::Future;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::approval::Approval;
use super::{ToolError, ToolOutput};
use crate::runtime::agent::RunContext;
use crate::runtime::checkpoint::NestedState;
use crate::state::ThreadState;

/// What repeating a call would do: decides what becomes of a call that was cut off when its process died.
///
/// A call that is not [`Pure`](Self::Pure) is written down before it begins and again with its result, each durable before the
/// run goes on. Who takes the run over uses a result that was written down and does not call the tool again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Effect {
    /// Nothing: reading, searching, asking a person. Made again, and nothing is written down. So is a call that only sets an agent
    /// to work with `run_nested`, whose calls are written down on their own.
    Pure,
    /// Nothing new: the target tells repeats apart by [`ToolContext::key`], or the second time changes nothing. Made again with
    /// the same key: effectively once.
    Keyed,
    /// Something. Not made again: the model is told that the outcome is unknown. At most once.
    #[default]
    Unsafe,
}

/// What a tool may know about the call.
#[derive(Debug, Clone)]
pub struct ToolContext {
    /// The run.
    pub run: RunContext,
    /// The call's id, unique within the message.
    pub call_id: String,
    /// Names this call to targets that take idempotency keys: 64 hexadecimal digits, the same when the call is made again after an
    /// interruption, and never another call's.
    pub key: String,
    /// `node:task id` of the call: what an agent inside of it sends its events under, and is saved under. There may be one.
    pub namespace: String,
    /// The state when the batch began.
    pub state: std::sync::Arc<ThreadState>,
    /// Answers to the questions that this call asked so far, in order.
    pub answers: Vec<Value>,
    /// The decision of a person who was asked whether this call may be made. An edited call is already in place of the model's.
    pub approval: Option<Approval>,
    /// The agent that this call set to work before it was made again.
    pub nested: Option<std::sync::Arc<NestedState>>,
}

/// A tool. Calls of one batch run side by side; blocking work belongs on the blocking pool.
/// Progress is told through `ctx.run.sink`, as [`AgentEvent::Custom`](crate::runtime::agent::AgentEvent::Custom): viewers get it as it
/// is, the model does not.
pub trait Tool: Send + Sync + 'static {
    /// Its arguments; their schema is what the model sees.
    type Args: DeserializeOwned + JsonSchema + Send;

    /// Its name, `[A-Za-z0-9_-]{1,64}`.
    fn name(&self) -> &str;

    /// What it is for, when to use it and when not. The model reads this.
    fn description(&self) -> &str;

    /// What repeating a call with these arguments would do.
    fn effect(&self, _args: &Self::Args) -> Effect {
        Effect::Unsafe
    }

    /// Whether its result is the run's result when every call of the batch is such.
    fn return_direct(&self) -> bool {
        false
    }

    /// Whether strangers write its results, so that nothing in them may speak for the system.
    fn is_foreign(&self) -> bool {
        false
    }

    /// Does it.
    fn call(
        &self,
        args: Self::Args,
        ctx: &ToolContext,
    ) -> impl Future<Output = Result<ToolOutput, ToolError>> + Send;
}
