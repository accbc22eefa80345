//! Enforces the rules of the todo list: one list per answer, repeated when the model no longer sees
//! it, and completed before the final answer.

use async_trait::async_trait;
use serde::Deserialize;

use super::answers::{is_final, last_answer, of_run, reminder};
use super::hooks::{HookOutcome, HookResult, Hooks, Jump};
use super::middleware::{Middleware, ModelNext};
use super::summarization::View;
use crate::messages::{Message, ToolCall, ToolStatus};
use crate::models::{ModelError, ModelRequest};
use crate::runtime::agent::RunContext;
use crate::state::{StateUpdate, ThreadState};
use crate::tools::builtins::{TODOS, Todo, TodoStatus, WRITE_TODOS};

/// Name of the message that repeats a list which is no longer in view.
const REMINDER: &str = "todo_reminder";
/// Name of the message that reminds the model of open items.
const COMPLETION_REMINDER: &str = "todo_completion_reminder";
/// Prefixes of lines with open items.
const OPEN_MARKS: [&str; 2] = ["- [ ] ", "- [~] "];
/// Maximum number of completion reminders per run.
const MAX_REMINDERS: usize = 2;
/// Result for a model that wrote several lists at once.
const ONE_AT_A_TIME: &str = "Error: only one call of write_todos can be made at a time, since each replaces the whole list; none of them was made. Call it once.";

/// Enforces the rules of the todo list.
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

    /// Repeats the list if its call was summarized away.
    async fn before_model(&self, state: &ThreadState, _ctx: &RunContext) -> HookResult {
        let todos = todos_of(state);
        if !has_open(&todos)
            || View::of(state)
                .kept()
                .iter()
                .any(|message| is_reminder(message) || message.tool_calls().iter().any(is_write))
        {
            return Ok(HookOutcome::default());
        }
        let text = format!(
            "Your todo list is no longer in the conversation. Its current content follows; keep it up to date:\n{}",
            rendered(&todos)
        );
        Ok(StateUpdate::messages([reminder(REMINDER, &text)]).into())
    }

    /// A request ends with a final answer only if [`after_model`](Middleware::after_model) jumped
    /// back to the model.
    async fn wrap_model_call(
        &self,
        mut request: ModelRequest,
        _ctx: &RunContext,
        next: ModelNext<'_>,
    ) -> Result<Message, ModelError> {
        let has_text = |message: &Message| is_final(message) && !message.is_blank();
        if request.messages.last().is_some_and(has_text)
            && let Some(open) = open_in(&request.messages)
        {
            let text = format!(
                "You have answered, but your todo list is not done. Go on with the work, or bring the list up to date with write_todos \
                 if it is, and then answer.\n{open}"
            );
            request.messages.push(reminder(COMPLETION_REMINDER, &text));
        }
        next.run(request).await
    }

    async fn after_model(&self, state: &ThreadState, _ctx: &RunContext) -> HookResult {
        let run = of_run(state.messages());
        let Some(answer) = last_answer(run) else {
            return Ok(HookOutcome::default());
        };
        let writes: Vec<&ToolCall> = answer
            .tool_calls()
            .iter()
            .filter(|call| is_write(call))
            .collect();
        if writes.len() > 1 {
            let refusals = writes
                .into_iter()
                .map(|call| Message::tool(call, ONE_AT_A_TIME, ToolStatus::Error));
            return Ok(StateUpdate::messages(refusals).into());
        }
        let answered = run.iter().filter(|message| is_final(message)).count();
        if is_final(answer) && answered <= MAX_REMINDERS && has_open(&todos_of(state)) {
            return Ok(HookOutcome::default().jump(Jump::Model));
        }
        Ok(HookOutcome::default())
    }
}

fn is_write(call: &ToolCall) -> bool {
    call.name == WRITE_TODOS
}

/// Returns the thread's list; empty if a client wrote an invalid value to the channel.
fn todos_of(state: &ThreadState) -> Vec<Todo> {
    state
        .channel(TODOS)
        .and_then(|list| Vec::deserialize(list).ok())
        .unwrap_or_default()
}

fn is_reminder(message: &Message) -> bool {
    message.name.as_deref() == Some(REMINDER)
}

/// Returns the open items of the list as last seen in the conversation, in a call or a reminder;
/// `None` if there are none.
fn open_in(messages: &[Message]) -> Option<String> {
    let list = messages.iter().rev().find_map(|message| {
        match message.tool_calls().iter().find(|call| is_write(call)) {
            Some(call) => Some(rendered(
                &call
                    .args
                    .get("todos")
                    .and_then(|todos| Vec::deserialize(todos).ok())
                    .unwrap_or_default(),
            )),
            None => is_reminder(message).then(|| message.content.text()),
        }
    })?;
    let open: Vec<&str> = list
        .lines()
        .filter(|line| OPEN_MARKS.iter().any(|mark| line.starts_with(mark)))
        .collect();
    (!open.is_empty()).then(|| open.join("\n"))
}

fn has_open(todos: &[Todo]) -> bool {
    todos
        .iter()
        .any(|todo| todo.status != TodoStatus::Completed)
}

/// Renders one line per item.
fn rendered(todos: &[Todo]) -> String {
    let line = |todo: &Todo| {
        let mark = match todo.status {
            TodoStatus::Pending => OPEN_MARKS[0],
            TodoStatus::InProgress => OPEN_MARKS[1],
            TodoStatus::Completed => "- [x] ",
        };
        format!(
            "{mark}{}",
            super::framework_tags::neutralised(&todo.content).replace('\n', " ")
        )
    };
    todos.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
#[path = "todo_tests.rs"]
mod tests;
