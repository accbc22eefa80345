//! `write_todos`: the agent's todo list, which the user sees.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::state::StateUpdate;
use crate::tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};

/// Name of the tool, by which `TodoMiddleware` recognizes it.
pub const WRITE_TODOS: &str = "write_todos";
/// State channel with the todo list.
pub const TODOS: &str = "todos";

/// Replaces the thread's todo list.
#[derive(Debug, Clone, Copy, Default)]
pub struct WriteTodos;

/// How far a step has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Not begun.
    Pending,
    /// Being worked on.
    InProgress,
    /// Done.
    Completed,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Todo {
    /// What is to be done, as a short sentence.
    pub content: String,
    /// How far it is.
    pub status: TodoStatus,
}

/// Arguments of `write_todos`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct WriteTodosArgs {
    /// The whole list, in the order of the work; it replaces the one before.
    pub todos: Vec<Todo>,
}

impl Tool for WriteTodos {
    type Args = WriteTodosArgs;

    fn name(&self) -> &str {
        WRITE_TODOS
    }

    fn description(&self) -> &str {
        "Write down the steps of your work as a list that the user can follow, and keep it true while you work. Use it for work of \
         three steps or more; do not use it for questions and small tasks. The list replaces the one before, so always give all \
         steps. Call it once at a time."
    }

    fn effect(&self, _args: &WriteTodosArgs) -> Effect {
        Effect::Pure
    }

    async fn call(
        &self,
        args: WriteTodosArgs,
        _ctx: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let list = json!(args.todos);
        let text = format!("The todo list is now {list}");
        Ok(ToolOutput {
            update: StateUpdate::channel(TODOS, list),
            ..ToolOutput::text(text)
        })
    }
}
