//! The trait that tool authors implement.
//!
//! A tool in four steps: a struct for the tool, a `Deserialize + JsonSchema` struct for its
//! arguments (doc comments become the parameters' descriptions), `impl Tool`, and
//! `registry.add(MyTool)`. A tool whose calls can be repeated safely declares it with
//! [`Tool::effect`].

use std::future::Future;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::approval::Approval;
use super::{ToolError, ToolOutput};
use crate::runtime::agent::RunContext;
use crate::runtime::checkpoint::NestedState;
use crate::state::ThreadState;

/// Effect of repeating a call. Decides how a call is handled that was in flight when its process
/// died.
///
/// A call that is not [`Pure`](Self::Pure) is recorded before it begins and again with its result,
/// each durably before the run continues. A process that takes over the run uses a recorded result
/// and does not repeat the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Effect {
    /// No effect, such as reading, searching or asking the user. The call is repeated and not
    /// recorded. Also for a call that only runs an agent with `run_nested`: the calls of that agent
    /// are recorded separately.
    Pure,
    /// Idempotent: the target detects repeats by [`ToolContext::key`], or the second call changes
    /// nothing. The call is repeated with the same key: effectively once.
    Keyed,
    /// Not repeatable. The call is not repeated, and the model reads that the outcome is unknown:
    /// at most once.
    #[default]
    Unsafe,
}

/// Context of a tool call.
#[derive(Debug, Clone)]
pub struct ToolContext {
    /// Context of the run.
    pub run: RunContext,
    /// Id of the call, unique within the message.
    pub call_id: String,
    /// Idempotency key of this call: 64 hexadecimal digits, the same when the call is repeated
    /// after an interruption, and unique to this call.
    pub key: String,
    /// `node:task id` of the call. A nested agent emits its events and stores its state under this
    /// namespace; a call has at most one nested agent.
    pub namespace: String,
    /// State at the beginning of the batch.
    pub state: std::sync::Arc<ThreadState>,
    /// Answers to the questions of this call so far, in order.
    pub answers: Vec<Value>,
    /// Decision of the user, if this call needed approval. An edited call has already replaced the
    /// model's call.
    pub approval: Option<Approval>,
    /// State of the nested agent that an earlier attempt of this call started.
    pub nested: Option<std::sync::Arc<NestedState>>,
}

/// Tool of an agent. Calls of one batch run concurrently; blocking work belongs on the blocking
/// pool.
///
/// Progress is reported through `ctx.run.sink` as
/// [`AgentEvent::Custom`](crate::runtime::agent::AgentEvent::Custom): viewers receive it unchanged,
/// the model does not.
///
/// ```
/// use deerflow_harness::tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// /// Tool that adds two numbers.
/// struct Add;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct AddArgs {
///     /// First number.
///     a: i64,
///     /// Second number.
///     b: i64,
/// }
///
/// impl Tool for Add {
///     type Args = AddArgs;
///
///     fn name(&self) -> &str {
///         "add"
///     }
///
///     fn description(&self) -> &str {
///         "Add two numbers."
///     }
///
///     fn effect(&self, _args: &AddArgs) -> Effect {
///         Effect::Pure
///     }
///
///     async fn call(&self, args: AddArgs, _ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
///         let sum = args.a.checked_add(args.b);
///         let sum = sum.ok_or_else(|| ToolError::ForModel("the sum is too large".into()))?;
///         Ok(sum.to_string().into())
///     }
/// }
/// ```
pub trait Tool: Send + Sync + 'static {
    /// Argument type; its schema is sent to the model.
    type Args: DeserializeOwned + JsonSchema + Send;

    /// Name of the tool, `[A-Za-z0-9_-]{1,64}`.
    fn name(&self) -> &str;

    /// Description for the model: purpose, when to use the tool and when not.
    fn description(&self) -> &str;

    /// Effect of repeating a call with these arguments.
    fn effect(&self, _args: &Self::Args) -> Effect {
        Effect::Unsafe
    }

    /// `true` if the tool's result can end the run: the run ends if every call of the batch is of
    /// such a tool.
    fn return_direct(&self) -> bool {
        false
    }

    /// `true` if results contain untrusted text, which must not pass for instructions of the
    /// system.
    fn is_foreign(&self) -> bool {
        false
    }

    /// Executes the call.
    fn call(
        &self,
        args: Self::Args,
        ctx: &ToolContext,
    ) -> impl Future<Output = Result<ToolOutput, ToolError>> + Send;
}
