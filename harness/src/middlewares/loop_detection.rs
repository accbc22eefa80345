//! Notices an agent that goes in circles: first the model is told, then the run is brought to its end.
//!
//! Everything is read from the conversation since the user spoke, so nothing is remembered between hooks, and a run that
//! another process takes over is judged as before.

use std::borrow::Cow;
use std::collections::HashSet;

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::answers::{last_answer, of_run, reminder, stopped};
use super::middleware::{HookOutcome, HookResult, Hooks, Middleware};
use super::next::ModelNext;
use crate::config::LoopDetectionConfig;
use crate::messages::{InvalidToolCall, Message, MessageKind, ToolCall};
use crate::models::{ModelError, ModelRequest};
use crate::runtime::agent::RunContext;
use crate::state::{StateUpdate, ThreadState};

/// Why the run ended.
const LOOP_CAPPED: &str = "loop_capped";
/// The name of the warning.
const WARNING: &str = "loop_warning";
/// Lines of a file that count as one place: reading on is no repetition.
const LINES_PER_PLACE: i64 = 200;
/// Arguments that say what a call is about, where there are any.
const SALIENT: [&str; 7] = ["path", "url", "query", "command", "pattern", "glob", "cmd"];
/// Stands for the arguments of a call that cannot be read.
const UNREADABLE: &str = "<unreadable>";
/// What the user reads when a run was ended.
const STOPPED: &str = "I stopped here, because I kept making the same tool calls without getting further. What stands above is what I \
                       have so far; tell me if I should try another way.";

/// Warns a model that repeats its calls, and stops it when it does not listen.
#[derive(Debug, Clone, Default)]
pub struct LoopDetectionMiddleware {
    limits: LoopDetectionConfig,
}

/// What is to be done about the latest calls.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    Fine,
    Warn(String),
    Stop,
}

impl LoopDetectionMiddleware {
    /// With these limits.
    pub fn new(limits: LoopDetectionConfig) -> Self {
        Self { limits }
    }

    /// Judges the last answer of a run by those before it.
    fn judge(&self, run: &[Message]) -> Verdict {
        let Some(calls) = last_answer(run)
            .map(calls_of)
            .filter(|calls| !calls.is_empty())
        else {
            return Verdict::Fine;
        };
        let answers: Vec<_> = run
            .iter()
            .rev()
            .map(calls_of)
            .filter(|calls| !calls.is_empty())
            .collect();
        let repeats = answers
            .iter()
            .take(self.limits.window_size)
            .filter(|earlier| same_calls(&calls, earlier))
            .count();
        if repeats >= self.limits.hard_limit {
            return Verdict::Stop;
        }
        let mut often = None;
        let tools: HashSet<&str> = calls.iter().map(|call| call.name.as_str()).collect();
        for tool in tools {
            let frequency = self.limits.frequency(tool);
            let window = frequency.hard_limit.max(self.limits.window_size);
            let latest = || answers.iter().flat_map(|calls| calls.iter().rev());
            let count = |skip: usize| {
                latest()
                    .skip(skip)
                    .take(window)
                    .filter(|call| call.name == tool)
                    .count()
            };
            let now = count(0);
            if now >= frequency.hard_limit {
                return Verdict::Stop;
            }
            if now >= frequency.warn && count(calls.len()) < frequency.warn {
                often = often.max(Some((now, tool)));
            }
        }
        // Only the answer that reaches a limit brings the warning, so it is given once.
        match often {
            _ if repeats == self.limits.warn_threshold => Verdict::Warn(format!(
                "You have made the very same tool calls {repeats} times. Their results will not change. Use what you have, try something \
                 different, or tell the user what is missing. If you go on like this, the run will be stopped."
            )),
            Some((count, tool)) => Verdict::Warn(format!(
                "{count} of your latest tool calls were calls of {tool}. Check whether they still bring you further; if not, answer with \
                 what you have. If you go on like this, the run will be stopped."
            )),
            None => Verdict::Fine,
        }
    }
}

#[async_trait]
impl Middleware for LoopDetectionMiddleware {
    fn name(&self) -> &str {
        "LoopDetectionMiddleware"
    }

    fn hooks(&self) -> Hooks {
        Hooks::WRAP_MODEL | Hooks::AFTER_MODEL
    }

    async fn wrap_model_call(
        &self,
        mut request: ModelRequest,
        _ctx: &RunContext,
        next: ModelNext<'_>,
    ) -> Result<Message, ModelError> {
        if let Verdict::Warn(text) = self.judge(of_run(&request.messages)) {
            request.messages.push(reminder(WARNING, &text));
        }
        next.run(request).await
    }

    async fn after_model(&self, state: &ThreadState, ctx: &RunContext) -> HookResult {
        let run = of_run(state.messages());
        let Some(answer) = last_answer(run).filter(|_| self.judge(run) == Verdict::Stop) else {
            return Ok(HookOutcome::default());
        };
        tracing::warn!(run_id = %ctx.run_id, thread_id = %ctx.thread_id, "a run that repeated its tool calls is brought to its end");
        let update = StateUpdate::messages([stopped(answer, LOOP_CAPPED, STOPPED)]);
        Ok(HookOutcome {
            stop_reason: Some(LOOP_CAPPED.to_owned()),
            ..update.into()
        })
    }
}

/// What an answer asks for; a call that cannot be read is what its text says.
fn calls_of(answer: &Message) -> Cow<'_, [ToolCall]> {
    let readable = answer.tool_calls();
    let MessageKind::Ai {
        invalid_tool_calls, ..
    } = &answer.kind
    else {
        return Cow::Borrowed(readable);
    };
    if invalid_tool_calls.is_empty() {
        return Cow::Borrowed(readable);
    }
    let as_text = |call: &InvalidToolCall| {
        let args = Map::from_iter([(UNREADABLE.to_owned(), Value::from(call.args.clone()))]);
        ToolCall::new(
            call.id.as_deref().unwrap_or_default(),
            call.name.as_deref().unwrap_or_default(),
            args,
        )
    };
    readable
        .iter()
        .cloned()
        .chain(invalid_tool_calls.iter().map(as_text))
        .collect()
}

/// Whether two answers ask for the same, in any order.
fn same_calls(left: &[ToolCall], right: &[ToolCall]) -> bool {
    let count = |calls: &[ToolCall], wanted: &ToolCall| {
        calls.iter().filter(|call| alike(call, wanted)).count()
    };
    left.len() == right.len()
        && left
            .iter()
            .all(|call| count(left, call) == count(right, call))
}

/// Whether two calls come to the same: by what they are about, or by everything they say.
fn alike(left: &ToolCall, right: &ToolCall) -> bool {
    if left.name != right.name {
        return false;
    }
    let same = |key: &str| left.args.get(key) == right.args.get(key);
    match left.name.as_str() {
        _ if [left, right]
            .iter()
            .any(|call| call.args.contains_key(UNREADABLE)) =>
        {
            left.args == right.args
        }
        "read_file" => same("path") && place(left) == place(right),
        "write_file" | "str_replace" => left.args == right.args,
        _ if SALIENT.iter().any(|key| left.args.contains_key(*key)) => {
            SALIENT.iter().all(|key| same(key))
        }
        _ => left.args == right.args,
    }
}

/// Where in its file a call reads.
fn place(call: &ToolCall) -> i64 {
    call.args
        .get("start_line")
        .and_then(Value::as_i64)
        .unwrap_or(1)
        .saturating_sub(1)
        / LINES_PER_PLACE
}

#[cfg(test)]
#[path = "loop_detection_tests.rs"]
mod tests;
