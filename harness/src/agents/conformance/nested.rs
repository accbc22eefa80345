//! `task`: another agent inside a call, which may ask a person.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::agents::nested::{NestedEnd, run_nested};
use crate::messages::Message;
use crate::runtime::agent::Agent;
use crate::tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};

/// Asks the agent it holds; the last message is the result.
pub(super) struct Task(pub(super) Arc<dyn Agent>);

/// Arguments of `task`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct TaskArgs {
    /// What the other agent is told.
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

    // The calls of the agent inside are written down on their own.
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
