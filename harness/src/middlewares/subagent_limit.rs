//! Bounds how many agents an agent sets to work: at once, and in one run.

use async_trait::async_trait;

use super::answers::{append, keeping, last_answer, of_run};
use super::middleware::{HookOutcome, HookResult, Hooks, Middleware};
use crate::messages::Message;
use crate::runtime::agent::RunContext;
use crate::state::{StateUpdate, ThreadState};

/// The tool that sets agents to work.
pub const TASK: &str = "task";
/// Why the run ended.
const SUBAGENT_LIMIT_CAPPED: &str = "subagent_limit_capped";
/// How many may be asked for at once.
const AT_ONCE: std::ops::RangeInclusive<u64> = 1..=4;
/// How many may be asked for in one run.
const IN_A_RUN: std::ops::RangeInclusive<u64> = 1..=50;
/// How many at once unless a run says otherwise.
const USUALLY_AT_ONCE: u64 = 3;
/// What the user reads when a run may set no more agents to work.
const USED_UP: &str = "No more tasks can be handed to other agents in this run; those beyond the limit were left out.";

/// Takes calls of `task` beyond the limits out of an answer.
#[derive(Debug, Clone, Copy)]
pub struct SubagentLimitMiddleware {
    /// Most of them in one run, unless the run says otherwise.
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
        let option = |key: &str| ctx.options.get(key).and_then(serde_json::Value::as_u64);
        let at_once = option("max_concurrent_subagents").unwrap_or(USUALLY_AT_ONCE).clamp(*AT_ONCE.start(), *AT_ONCE.end());
        let total = option("max_total_subagents").unwrap_or(self.max_total as u64).clamp(*IN_A_RUN.start(), *IN_A_RUN.end());
        Ok(limited(of_run(state.messages()), at_once as usize, total as usize))
    }
}

/// What becomes of the last answer's calls, after those of the answers before it.
fn limited(run: &[Message], at_once: usize, total: usize) -> HookOutcome {
    let Some(answer) = last_answer(run) else { return HookOutcome::default() };
    let tasks = |message: &Message| message.tool_calls().iter().filter(|call| call.name == TASK).count();
    let asked = tasks(answer);
    let used = run.iter().map(tasks).sum::<usize>() - asked;
    let left = total.saturating_sub(used);
    let room = at_once.min(left);
    if asked <= room {
        return HookOutcome::default();
    }
    let mut kept = 0;
    let mut cut = keeping(answer, |call| {
        call.name != TASK || {
            kept += 1;
            kept <= room
        }
    });
    if left > 0 {
        return StateUpdate::messages([cut]).into();
    }
    cut = cut.with(|body| append(&mut body.content, USED_UP));
    HookOutcome { stop_reason: Some(SUBAGENT_LIMIT_CAPPED.to_owned()), ..StateUpdate::messages([cut]).into() }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;
    use crate::messages::{MessageKind, ToolCall};

    fn answer(calls: &[&str]) -> Message {
        Message::ai("on it").with(|body| {
            if let MessageKind::Ai { tool_calls, .. } = &mut body.kind {
                *tool_calls = calls.iter().enumerate().map(|(at, name)| ToolCall::new(format!("c{at}"), *name, Map::new())).collect();
            }
        })
    }

    fn names(outcome: &HookOutcome) -> Vec<&str> {
        outcome.update.messages[0].tool_calls().iter().map(|call| call.name.as_str()).collect()
    }

    #[test]
    fn calls_beyond_the_limits_go_and_others_stay() {
        let five = answer(&["task", "ls", "task", "task", "task", "task"]);
        assert_eq!(names(&limited(std::slice::from_ref(&five), 3, 6)), ["task", "ls", "task", "task"]);
        assert_eq!(limited(&[answer(&["task", "task", "task"])], 3, 6), HookOutcome::default());
        let second = limited(&[answer(&["task"; 3]), answer(&["task"; 3])], 3, 5);
        assert_eq!((names(&second).len(), second.stop_reason), (2, None));
    }

    #[test]
    fn a_run_without_tasks_left_is_told_so() {
        let done = limited(&[answer(&["task"; 3]), answer(&["task"])], 3, 3);
        assert!(names(&done).is_empty());
        assert_eq!(done.stop_reason.as_deref(), Some("subagent_limit_capped"));
        assert!(done.update.messages[0].content.text().ends_with("were left out."));
    }
}
