//! `task`: delegates work to a subagent and waits for its report.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;
use tracing::Instrument;

use super::monitor::Monitor;
use super::outcome::{TaskOutcome, classify};
use super::pool::{Subagent, SubagentPool};
use super::prompt;
use crate::agents::run_nested_within;
use crate::messages::Message;
use crate::middlewares::TASK;
use crate::runtime::agent::{SubagentUpdate, TokenCount};
use crate::runtime::tasks::panic_text;
use crate::state::{StateUpdate, ThreadState};
use crate::tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};

/// State channels that a subagent inherits from its lead agent: the location of the thread's files.
const SHARED_CHANNELS: [&str; 2] = ["thread_data", "sandbox"];

/// Delegates tasks to the subagents of a pool.
#[derive(Debug, Clone)]
pub struct TaskTool {
    pool: Arc<SubagentPool>,
    description: String,
}

impl TaskTool {
    /// Creates the tool over this pool.
    pub fn new(pool: SubagentPool) -> Self {
        let description = prompt::tool_description(pool.kinds());
        Self {
            pool: Arc::new(pool),
            description,
        }
    }
}

/// Arguments of `task`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct TaskArgs {
    /// What is to be done, in three to five words; shown to the user.
    pub description: String,
    /// The whole task: its aim, what is known, where things are, what to give back.
    pub prompt: String,
    /// Which kind of agent is to do it.
    pub subagent_type: String,
    /// Fewer steps than the agent usually has.
    #[serde(default)]
    pub max_turns: Option<u64>,
}

impl Tool for TaskTool {
    type Args = TaskArgs;

    fn name(&self) -> &str {
        TASK
    }

    fn description(&self) -> &str {
        &self.description
    }

    // A repeated call resumes the subagent, which records its own calls. The report is recorded as
    // well, because it cannot always be derived from the state: a task that timed out must not get
    // its time again.
    fn effect(&self, _args: &TaskArgs) -> Effect {
        Effect::Keyed
    }

    async fn call(&self, args: TaskArgs, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let unusable = |reason: String| {
            Ok(TaskOutcome::Failed(reason).output(
                None,
                TokenCount::default(),
                &ThreadState::default(),
            ))
        };
        let Some(subagent) = self.pool.get(&args.subagent_type) else {
            let kind_names: Vec<&str> = self.pool.kinds().map(|kind| kind.name.as_str()).collect();
            let requested: String = args.subagent_type.chars().take(80).collect();
            return unusable(format!(
                "there is no subagent_type {requested:?}; there are: {}",
                kind_names.join(", ")
            ));
        };
        if args.prompt.trim().is_empty() {
            return unusable("the prompt is empty; write down the whole task".to_owned());
        }
        let caller = caller(&subagent.kind.name);
        let mut monitor = Monitor::begin(ctx, &subagent.model, &caller);
        monitor.emit(SubagentUpdate::Started {
            description: args.description,
        });
        // The semaphore is never closed.
        let _permit = self.pool.permits.acquire().await;
        let span =
            tracing::info_span!("subagent", kind = %subagent.kind.name, task_id = %ctx.call_id);
        let outcome = run_subagent(subagent, args.prompt, args.max_turns, ctx, &mut monitor)
            .instrument(span)
            .await;
        monitor.emit_messages();
        if let Some(event) = outcome.event() {
            monitor.emit(event);
        }
        match outcome {
            TaskOutcome::EndsRun { name, message } => Err(ToolError::EndRun { name, message }),
            outcome => {
                Ok(outcome.output(Some(&subagent.model), monitor.usage(), &monitor.last_state))
            }
        }
    }
}

/// Returns the caller name of model calls of this kind.
pub(super) fn caller(kind: &str) -> String {
    format!("subagent:{kind}")
}

/// Runs the subagent within its limits. Dropping the future stops it at once.
async fn run_subagent(
    subagent: &Subagent,
    prompt: String,
    max_turns: Option<u64>,
    ctx: &ToolContext,
    monitor: &mut Monitor<'_>,
) -> TaskOutcome {
    let kind = &subagent.kind;
    let steps = monitor.steps_left(max_turns.map_or(kind.max_turns, |requested| {
        requested.max(1).min(kind.max_turns)
    }));
    let time = monitor.time_left(kind.time_limit);
    monitor.start_clock();
    let shared = SHARED_CHANNELS
        .into_iter()
        .filter_map(|name| Some((name, ctx.state.channel(name)?.clone())));
    let begins_with = shared.fold(
        StateUpdate::messages([Message::human(prompt)]),
        |update, (name, value)| update.and(name, value),
    );
    let run = AssertUnwindSafe(run_nested_within(
        &*subagent.agent,
        begins_with,
        ctx,
        steps,
        monitor,
    ))
    .catch_unwind();
    let ended = tokio::time::timeout(time, run).await;
    match ended {
        Ok(Ok(end)) => classify(end, &monitor.last_state),
        Ok(Err(panic)) => {
            let text = panic_text(panic.as_ref());
            tracing::error!(panic = %text, "subagent panicked");
            TaskOutcome::Failed(format!("it failed unexpectedly (panic): {text}"))
        }
        Err(_) => TaskOutcome::TimedOut(kind.time_limit),
    }
}
