//! Keeps an agent to its todo list: one list at a time, not forgotten, and not left behind half done.

use async_trait::async_trait;
use serde::Deserialize;

use super::answers::{is_final, last_answer, of_run, reminder};
use super::middleware::{HookOutcome, HookResult, Hooks, Jump, Middleware};
use super::next::ModelNext;
use crate::messages::{Message, ToolCall, ToolStatus};
use crate::models::{ModelError, ModelRequest};
use crate::runtime::agent::RunContext;
use crate::state::{StateUpdate, ThreadState};
use crate::tools::builtins::{TODOS, Todo, TodoStatus, WRITE_TODOS};

/// The name of the message that brings back a list which is out of sight.
const REMINDER: &str = "todo_reminder";
/// The name of the message that asks for the rest of the work.
const COMPLETION_REMINDER: &str = "todo_completion_reminder";
/// How often an agent is sent back to its work in one run.
const MOST_REMINDERS: usize = 2;
/// What the model reads when it wrote several lists at once.
const ONE_AT_A_TIME: &str =
    "Error: only one call of write_todos can be made at a time, since each replaces the whole list; none of them was made. Call it once.";

/// The rules of the todo list.
#[derive(Debug, Clone, Copy, Default)]
pub struct TodoMiddleware;

#[async_trait]
impl Middleware for TodoMiddleware {
    fn name(&self) -> &str {
        "TodoMiddleware"
    }

    fn hooks(&self) -> Hooks {
        Hooks::BEFORE_MODEL | Hooks::WRAP_MODEL | Hooks::AFTER_MODEL
    }

    /// A list whose writing was summarized away is shown again.
    async fn before_model(&self, state: &ThreadState, _ctx: &RunContext) -> HookResult {
        let todos = todos_of(state);
        let in_sight = |message: &Message| message.name.as_deref() == Some(REMINDER) || message.tool_calls().iter().any(is_write);
        if !has_open(&todos) || state.messages().iter().any(in_sight) {
            return Ok(HookOutcome::default());
        }
        let text =
            format!("Your todo list is no longer in the conversation. It stands like this; keep it up to date:\n{}", rendered(&todos));
        Ok(StateUpdate::messages([reminder(REMINDER, &text)]).into())
    }

    /// A final answer is the last thing a model is asked about only when [`after_model`](Middleware::after_model) sent it back.
    async fn wrap_model_call(&self, mut request: ModelRequest, _ctx: &RunContext, next: ModelNext<'_>) -> Result<Message, ModelError> {
        let said = |message: &Message| is_final(message) && !message.content.text().trim().is_empty();
        let mut open = if request.messages.last().is_some_and(said) { written(&request.messages) } else { Vec::new() };
        open.retain(|todo| todo.status != TodoStatus::Completed);
        if !open.is_empty() {
            let text = format!(
                "You have answered, but your todo list is not done. Go on with the work, or bring the list up to date with write_todos \
                 if it is, and then answer.\n{}",
                rendered(&open)
            );
            request.messages.push(reminder(COMPLETION_REMINDER, &text));
        }
        next.run(request).await
    }

    async fn after_model(&self, state: &ThreadState, _ctx: &RunContext) -> HookResult {
        let run = of_run(state.messages());
        let Some(answer) = last_answer(run) else { return Ok(HookOutcome::default()) };
        let writes: Vec<&ToolCall> = answer.tool_calls().iter().filter(|call| is_write(call)).collect();
        if writes.len() > 1 {
            let refusals = writes.into_iter().map(|call| Message::tool(call, ONE_AT_A_TIME, ToolStatus::Error));
            return Ok(StateUpdate::messages(refusals).into());
        }
        let answered = run.iter().filter(|message| is_final(message)).count();
        if is_final(answer) && answered <= MOST_REMINDERS && has_open(&todos_of(state)) {
            return Ok(HookOutcome::default().jump(Jump::Model));
        }
        Ok(HookOutcome::default())
    }
}

fn is_write(call: &ToolCall) -> bool {
    call.name == WRITE_TODOS
}

/// The thread's list; a client may have written anything there.
fn todos_of(state: &ThreadState) -> Vec<Todo> {
    state.channel(TODOS).and_then(|list| Vec::deserialize(list).ok()).unwrap_or_default()
}

/// The list as the conversation knows it.
fn written(messages: &[Message]) -> Vec<Todo> {
    let newest = messages.iter().rev().flat_map(Message::tool_calls).find(|call| is_write(call));
    newest.and_then(|call| Vec::deserialize(call.args.get("todos")?).ok()).unwrap_or_default()
}

fn has_open(todos: &[Todo]) -> bool {
    todos.iter().any(|todo| todo.status != TodoStatus::Completed)
}

fn rendered(todos: &[Todo]) -> String {
    let line = |todo: &Todo| {
        let mark = match todo.status {
            TodoStatus::Pending => "[ ]",
            TodoStatus::InProgress => "[~]",
            TodoStatus::Completed => "[x]",
        };
        format!("- {mark} {}", super::framework_tags::neutralised(&todo.content))
    };
    todos.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
#[path = "todo_tests.rs"]
mod tests;
