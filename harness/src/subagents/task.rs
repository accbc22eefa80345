//! `task`: hands work to a subagent and waits for its report.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;
use tracing::Instrument;

use super::crew::{Crew, Member};
use super::prompt;
use super::report::{Ending, judge};
use super::watch::Watch;
use crate::agents::run_nested_within;
use crate::messages::Message;
use crate::middlewares::TASK;
use crate::runtime::agent::{SubagentNews, TokenCount};
use crate::runtime::tasks::panic_text;
use crate::state::{StateUpdate, ThreadState};
use crate::tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};

/// What a subagent has of its lead agent's state: where the thread's files are.
const SHARED: [&str; 2] = ["thread_data", "sandbox"];

/// Sets members of a crew to work.
#[derive(Debug, Clone)]
pub struct TaskTool {
    crew: Arc<Crew>,
    description: String,
}

impl TaskTool {
    /// The tool over this crew.
    pub fn new(crew: Crew) -> Self {
        let description = prompt::tool_description(crew.kinds());
        Self {
            crew: Arc::new(crew),
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

    // Made again, the call has the subagent go on where it stood, and what that one calls is written down on its own. The report is
    // written down, too, for not every end can be had again from a state: a task whose time was up has had its time.
    fn effect(&self, _args: &TaskArgs) -> Effect {
        Effect::Keyed
    }

    async fn call(&self, args: TaskArgs, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let unusable = |reason: String| {
            Ok(Ending::Failed(reason).output(None, TokenCount::default(), &ThreadState::default()))
        };
        let Some(member) = self.crew.get(&args.subagent_type) else {
            let known: Vec<&str> = self.crew.kinds().map(|kind| kind.name.as_str()).collect();
            let asked: String = args.subagent_type.chars().take(80).collect();
            return unusable(format!(
                "there is no subagent_type {asked:?}; there are: {}",
                known.join(", ")
            ));
        };
        if args.prompt.trim().is_empty() {
            return unusable("the prompt is empty; write down the whole task".to_owned());
        }
        let caller = caller(&member.kind.name);
        let mut watch = Watch::begin(ctx, &member.model, &caller);
        watch.tell(SubagentNews::Started {
            description: args.description,
        });
        // Nobody closes the room.
        let _place = self.crew.room.acquire().await;
        let span =
            tracing::info_span!("subagent", kind = %member.kind.name, task_id = %ctx.call_id);
        let ending = work(member, args.prompt, args.max_turns, ctx, &mut watch)
            .instrument(span)
            .await;
        watch.tell_messages();
        if let Some(news) = ending.news() {
            watch.tell(news);
        }
        match ending {
            Ending::EndsRun { name, message } => Err(ToolError::EndRun { name, message }),
            ending => Ok(ending.output(Some(&member.model), watch.usage(), &watch.reached)),
        }
    }
}

/// Who asks a model for a subagent of this kind.
pub(super) fn caller(kind: &str) -> String {
    format!("subagent:{kind}")
}

/// Has the member do it within its limits. Whoever drops this stops it at once.
async fn work(
    member: &Member,
    prompt: String,
    max_turns: Option<u64>,
    ctx: &ToolContext,
    watch: &mut Watch<'_>,
) -> Ending {
    let kind = &member.kind;
    let steps = watch
        .steps_left(max_turns.map_or(kind.max_turns, |asked| asked.max(1).min(kind.max_turns)));
    let time = watch.time_left(kind.time_limit);
    watch.start_clock();
    let shared = SHARED
        .into_iter()
        .filter_map(|name| Some((name, ctx.state.channel(name)?.clone())));
    let begins_with = shared.fold(
        StateUpdate::messages([Message::human(prompt)]),
        |update, (name, value)| update.and(name, value),
    );
    let run = AssertUnwindSafe(run_nested_within(
        &*member.agent,
        begins_with,
        ctx,
        steps,
        watch,
    ))
    .catch_unwind();
    let ended = tokio::time::timeout(time, run).await;
    match ended {
        Ok(Ok(end)) => judge(end, &watch.reached),
        Ok(Err(panic)) => {
            let text = panic_text(panic.as_ref());
            tracing::error!(panic = %text, "a subagent panicked");
            Ending::Failed(format!("it failed unexpectedly (panic): {text}"))
        }
        Err(_) => Ending::TimedOut(kind.time_limit),
    }
}
