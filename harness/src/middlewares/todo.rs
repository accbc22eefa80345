//! Keeps an agent to its todo list: one list at a time, not forgotten, and not left behind half done.

use async_trait::async_trait;
use serde::Deserialize;

use super::answers::{is_final, last_answer, of_run, reminder};
use super::middleware::{HookOutcome, HookResult, Hooks, Jump, Middleware};
use super::next::ModelNext;
use super::summarization::View;
use crate::messages::{Message, ToolCall, ToolStatus};
use crate::models::{ModelError, ModelRequest};
use crate::runtime::agent::RunContext;
use crate::state::{StateUpdate, ThreadState};
use crate::tools::builtins::{TODOS, Todo, TodoStatus, WRITE_TODOS};

/// The name of the message that brings back a list which is out of sight.
const REMINDER: &str = "todo_reminder";
/// The name of the message that asks for the rest of the work.
const COMPLETION_REMINDER: &str = "todo_completion_reminder";
/// How the lines of open points begin.
const OPEN_MARKS: [&str; 2] = ["- [ ] ", "- [~] "];
/// How often an agent is sent back to its work in one run.
const MOST_REMINDERS: usize = 2;
/// What the model reads when it wrote several lists at once.
const ONE_AT_A_TIME: &str = "Error: only one call of write_todos can be made at a time, since each replaces the whole list; none of them was made. Call it once.";

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
        if !has_open(&todos)
            || View::of(state)
                .kept()
                .iter()
                .any(|message| is_reminder(message) || message.tool_calls().iter().any(is_write))
        {
            return Ok(HookOutcome::default());
        }
        let text = format!(
            "Your todo list is no longer in the conversation. It stands like this; keep it up to date:\n{}",
            rendered(&todos)
        );
        Ok(StateUpdate::messages([reminder(REMINDER, &text)]).into())
    }

    /// A final answer is the last thing a model is asked about only when [`after_model`](Middleware::after_model) sent it back.
    async fn wrap_model_call(
        &self,
        mut request: ModelRequest,
        _ctx: &RunContext,
        next: ModelNext<'_>,
    ) -> Result<Message, ModelError> {
        let said =
            |message: &Message| is_final(message) && !message.content.text().trim().is_empty();
        if request.messages.last().is_some_and(said)
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
    state
        .channel(TODOS)
        .and_then(|list| Vec::deserialize(list).ok())
        .unwrap_or_default()
}

fn is_reminder(message: &Message) -> bool {
    message.name.as_deref() == Some(REMINDER)
}

/// What is open on the list as the conversation shows it last, written by the model or brought back; `None` where nothing is.
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

/// A line for each point.
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
