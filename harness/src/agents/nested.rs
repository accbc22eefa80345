//! Runs an agent inside a tool call of another agent, through [`crate::runtime::agent::run_nested`].

use std::sync::Arc;

use serde_json::Value;

use crate::messages::Message;
use crate::runtime::agent::{self, Agent, AgentError, NestedCall, NestedOutcome, NestedQuestion};
use crate::state::{StateUpdate, ThreadState};
use crate::tools::{ToolContext, ToolControl};

pub use crate::runtime::agent::NestedListener;

/// Result of running an agent inside a call.
#[derive(Debug, Clone, PartialEq)]
pub enum NestedEnd {
    /// The agent ended with this state.
    Done(Arc<ThreadState>),
    /// The agent asks the user a question. The call returns this control as its output, and runs
    /// the agent again when the call is repeated with the answer.
    Asks(ToolControl),
}

impl From<NestedOutcome> for NestedEnd {
    fn from(outcome: NestedOutcome) -> Self {
        match outcome {
            NestedOutcome::Done(state) => Self::Done(state),
            NestedOutcome::Asks(NestedQuestion { id, question }) => {
                Self::Asks(ToolControl::AskFor { id, question })
            }
        }
    }
}

/// Returns the listener state that an earlier attempt of this call saved, if any.
pub fn listener_state(ctx: &ToolContext) -> Option<Value> {
    nested_call(ctx, 0).listener_state()
}

/// Runs `agent` on these messages, or resumes it at the position that an earlier attempt of this
/// call saved. Subscribers of subgraphs receive its events under the call's `node:task id`. A call
/// runs at most one nested agent.
pub async fn run_nested(
    agent: &dyn Agent,
    messages: impl IntoIterator<Item = Message>,
    ctx: &ToolContext,
) -> Result<NestedEnd, AgentError> {
    run_nested_within(
        agent,
        StateUpdate::messages(messages),
        ctx,
        ctx.run.recursion_limit,
        &mut (),
    )
    .await
}

/// Like [`run_nested`], with `initial` as the first state update, a limit of `max_steps`
/// super-steps, and a listener.
pub async fn run_nested_within(
    agent: &dyn Agent,
    initial: StateUpdate,
    ctx: &ToolContext,
    max_steps: u64,
    listener: &mut impl NestedListener,
) -> Result<NestedEnd, AgentError> {
    let ended = agent::run_nested(agent, initial, nested_call(ctx, max_steps), listener).await?;
    Ok(ended.into())
}

fn nested_call(ctx: &ToolContext, max_steps: u64) -> NestedCall<'_> {
    NestedCall {
        run: &ctx.run,
        namespace: &ctx.namespace,
        saved: ctx.nested.as_deref(),
        answers: &ctx.answers,
        max_steps,
    }
}
