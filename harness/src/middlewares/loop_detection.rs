//! Detects an agent that repeats its tool calls: first the model is warned, then the run is
//! stopped.
//!
//! The decision depends only on the conversation since the last user message. No state is stored
//! between hooks, so the decision is the same after failover.

use std::borrow::Cow;
use std::collections::HashSet;

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::answers::{last_answer, of_run, reminder, stop_answer};
use super::hooks::{HookOutcome, HookResult, Hooks};
use super::middleware::{Middleware, ModelNext};
use crate::config::LoopDetectionConfig;
use crate::messages::{InvalidToolCall, Message, MessageKind, ToolCall};
use crate::models::{ModelError, ModelRequest};
use crate::runtime::agent::RunContext;
use crate::state::{StateUpdate, ThreadState};

/// Stop reason of the run.
const LOOP_CAPPED: &str = "loop_capped";
/// Name of the warning message.
const WARNING: &str = "loop_warning";
/// Number of lines that count as one range of a file. Reads of different ranges are not
/// repetitions.
const LINES_PER_RANGE: i64 = 200;
/// Arguments that identify the subject of a call. Calls without any of them are compared by all
/// arguments.
const SALIENT: [&str; 7] = ["path", "url", "query", "command", "pattern", "glob", "cmd"];
/// Placeholder for the arguments of a call that cannot be parsed.
const UNREADABLE: &str = "<unreadable>";
/// Text for the user when a run is stopped.
const STOPPED: &str = "I stopped here, because I kept making the same tool calls without getting further. The text above is what I \
                       have so far; tell me if I should try another way.";

/// Warns a model that repeats its calls and stops the run if it continues.
#[derive(Debug, Clone, Default)]
pub struct LoopDetectionMiddleware {
    limits: LoopDetectionConfig,
}

/// Decision about the latest calls.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    Fine,
    Warn(String),
    Stop,
}

impl LoopDetectionMiddleware {
    /// Creates the middleware with these limits.
    pub fn new(limits: LoopDetectionConfig) -> Self {
        Self { limits }
    }

    /// Compares the last answer of a run with the earlier ones.
    fn classify(&self, run: &[Message]) -> Verdict {
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
        // Only the answer that reaches a limit triggers the warning, so it is added once.
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
        if let Verdict::Warn(text) = self.classify(of_run(&request.messages)) {
            request.messages.push(reminder(WARNING, &text));
        }
        next.run(request).await
    }

    async fn after_model(&self, state: &ThreadState, ctx: &RunContext) -> HookResult {
        let run = of_run(state.messages());
        let Some(answer) = last_answer(run).filter(|_| self.classify(run) == Verdict::Stop) else {
            return Ok(HookOutcome::default());
        };
        tracing::warn!(run_id = %ctx.run_id, thread_id = %ctx.thread_id, "run stopped because it repeated its tool calls");
        let update = StateUpdate::messages([stop_answer(answer, LOOP_CAPPED, STOPPED)]);
        Ok(HookOutcome {
            stop_reason: Some(LOOP_CAPPED.to_owned()),
            ..update.into()
        })
    }
}

/// Returns the calls of an answer; a call that cannot be parsed is represented by its raw text.
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

/// Reports whether two answers have the same calls, in any order.
fn same_calls(left: &[ToolCall], right: &[ToolCall]) -> bool {
    let count = |calls: &[ToolCall], wanted: &ToolCall| {
        calls
            .iter()
            .filter(|call| are_equivalent(call, wanted))
            .count()
    };
    left.len() == right.len()
        && left
            .iter()
            .all(|call| count(left, call) == count(right, call))
}

/// Reports whether two calls are equivalent: by their identifying arguments, or by all arguments.
fn are_equivalent(left: &ToolCall, right: &ToolCall) -> bool {
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
        "read_file" => same("path") && line_range(left) == line_range(right),
        "write_file" | "str_replace" => left.args == right.args,
        _ if SALIENT.iter().any(|key| left.args.contains_key(*key)) => {
            SALIENT.iter().all(|key| same(key))
        }
        _ => left.args == right.args,
    }
}

/// Returns the range of lines that a call reads, as a number.
fn line_range(call: &ToolCall) -> i64 {
    call.args
        .get("start_line")
        .and_then(Value::as_i64)
        .unwrap_or(1)
        .saturating_sub(1)
        / LINES_PER_RANGE
}

#[cfg(test)]
#[path = "loop_detection_tests.rs"]
mod tests;
