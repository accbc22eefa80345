//! Limits the number of subagents that an agent starts, at once and per run.

use super::answers::{append, last_answer, of_run, with_calls_where};
use super::delegation::{TASK, TaskLimits};
use super::hooks::{HookOutcome, HookResult, Hooks};
use super::middleware::Middleware;
use crate::messages::Message;
use crate::runtime::agent::RunContext;
use crate::state::{StateUpdate, ThreadState};
use async_trait::async_trait;

/// Stop reason of the run.
const SUBAGENT_LIMIT_CAPPED: &str = "subagent_limit_capped";
/// Text for the user when a run has reached its limit of tasks.
const LIMIT_REACHED: &str = "No more tasks can be handed to other agents in this run; those beyond the limit were left out.";

/// Removes calls of `task` that exceed the limits from an answer.
#[derive(Debug, Clone, Copy)]
pub struct SubagentLimitMiddleware {
    /// Maximum number of tasks per run, unless the run sets another.
    pub max_total: usize,
}

#[async_trait]
impl Middleware for SubagentLimitMiddleware {
    fn name(&self) -> &str {
        "SubagentLimitMiddleware"
    }

    fn hooks(&self) -> Hooks {
        Hooks::AFTER_MODEL
    }

    async fn after_model(&self, state: &ThreadState, ctx: &RunContext) -> HookResult {
        let limits = TaskLimits::read(&ctx.options);
        Ok(limited(
            of_run(state.messages()),
            limits.at_once,
            limits.in_a_run.unwrap_or(self.max_total),
        ))
    }
}

/// Applies the limits to the calls of the last answer, counting the calls of earlier answers.
fn limited(run: &[Message], at_once: usize, total: usize) -> HookOutcome {
    let Some(answer) = last_answer(run) else {
        return HookOutcome::default();
    };
    let tasks = |message: &Message| {
        message
            .tool_calls()
            .iter()
            .filter(|call| call.name == TASK)
            .count()
    };
    let requested = tasks(answer);
    let used = run.iter().map(tasks).sum::<usize>() - requested;
    let remaining = total.saturating_sub(used);
    let room = at_once.min(remaining);
    if requested <= room {
        return HookOutcome::default();
    }
    let mut retained = 0;
    let mut cut = with_calls_where(answer, |call| {
        call.name != TASK || {
            retained += 1;
            retained <= room
        }
    });
    if remaining > 0 {
        return StateUpdate::messages([cut]).into();
    }
    cut = cut.with(|body| append(&mut body.content, LIMIT_REACHED));
    HookOutcome {
        stop_reason: Some(SUBAGENT_LIMIT_CAPPED.to_owned()),
        ..StateUpdate::messages([cut]).into()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;
    use crate::messages::{MessageKind, ToolCall};

    fn answer(calls: &[&str]) -> Message {
        Message::ai("on it").with(|body| {
            if let MessageKind::Ai { tool_calls, .. } = &mut body.kind {
                *tool_calls = calls
                    .iter()
                    .enumerate()
                    .map(|(at, name)| ToolCall::new(format!("c{at}"), *name, Map::new()))
                    .collect();
            }
        })
    }

    fn names(outcome: &HookOutcome) -> Vec<&str> {
        outcome.update.messages[0]
            .tool_calls()
            .iter()
            .map(|call| call.name.as_str())
            .collect()
    }

    #[test]
    fn calls_over_limit_are_removed_and_others_stay() {
        let five = answer(&["task", "ls", "task", "task", "task", "task"]);
        assert_eq!(
            names(&limited(std::slice::from_ref(&five), 3, 6)),
            ["task", "ls", "task", "task"]
        );
        assert_eq!(
            limited(&[answer(&["task", "task", "task"])], 3, 6),
            HookOutcome::default()
        );
        let second = limited(&[answer(&["task"; 3]), answer(&["task"; 3])], 3, 5);
        assert_eq!((names(&second).len(), second.stop_reason), (2, None));
    }

    #[test]
    fn exhausted_task_limit_adds_notice() {
        let done = limited(&[answer(&["task"; 3]), answer(&["task"])], 3, 3);
        assert!(names(&done).is_empty());
        assert_eq!(done.stop_reason.as_deref(), Some("subagent_limit_capped"));
        assert!(
            done.update.messages[0]
                .content
                .text()
                .ends_with("were left out.")
        );
    }
}
