//! `task`: runs a nested agent inside a call; the agent may ask the user.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::agents::nested::{NestedEnd, run_nested};
use crate::messages::Message;
use crate::runtime::agent::Agent;
use crate::tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};

/// Runs the nested agent and returns its last message.
pub(super) struct Task(pub(super) Arc<dyn Agent>);

/// Arguments of `task`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct TaskArgs {
    /// Prompt of the other agent.
    prompt: String,
}

impl Tool for Task {
    type Args = TaskArgs;

    fn name(&self) -> &str {
        "task"
    }

    fn description(&self) -> &str {
        "Has another agent answer."
    }

    // The nested agent records its own calls.
    fn effect(&self, _args: &TaskArgs) -> Effect {
        Effect::Pure
    }

    async fn call(&self, args: TaskArgs, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let ended = run_nested(&*self.0, [Message::human(args.prompt)], ctx).await;
        match ended.map_err(|error| ToolError::EndRun {
            name: error.name().to_owned(),
            message: error.to_string(),
        })? {
            NestedEnd::Asks(question) => Ok(ToolOutput::only(question)),
            NestedEnd::Done(state) => Ok(state
                .messages()
                .last()
                .map(|message| message.content.text())
                .unwrap_or_default()
                .into()),
        }
    }
}
