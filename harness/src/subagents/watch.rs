//! Follows a subagent at work: tells viewers what it says, and counts what its limits are held against.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::agents::{NestedListener, kept};
use crate::messages::{Message, MessageKind};
use crate::runtime::agent::{AgentEvent, SubagentEvent, SubagentNews, TokenCount};
use crate::state::ThreadState;
use crate::tools::ToolContext;

/// One subagent at work on one task.
pub(super) struct Watch<'a> {
    ctx: &'a ToolContext,
    model: &'a str,
    /// Who asks the model.
    caller: &'a str,
    /// What it had spent when the call was last made.
    before: Spent,
    /// What it has spent by now, time aside.
    spent: Spent,
    since: Instant,
    /// The ids of the messages that viewers know.
    told: HashSet<String>,
    /// The state it has reached.
    pub(super) reached: Arc<ThreadState>,
}

/// What a subagent has used up of its limits, over all attempts of its run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Spent {
    usage: TokenCount,
    steps: u64,
    millis: u64,
}

impl<'a> Watch<'a> {
    /// Begins to follow the subagent of this call, which may have been at work before.
    pub(super) fn begin(ctx: &'a ToolContext, model: &'a str, caller: &'a str) -> Self {
        let before = kept(ctx)
            .and_then(|kept| Spent::deserialize(kept).ok())
            .unwrap_or_default();
        let reached = ctx
            .nested
            .as_ref()
            .map(|nested| nested.state.clone())
            .unwrap_or_default();
        let told = reached
            .messages()
            .iter()
            .filter(|message| is_told(message))
            .filter_map(|message| message.id.clone())
            .collect();
        Self {
            ctx,
            model,
            caller,
            before,
            spent: before,
            since: Instant::now(),
            told,
            reached,
        }
    }

    /// Its time begins now.
    pub(super) fn start_clock(&mut self) {
        self.since = Instant::now();
    }

    /// What is left of so many steps.
    pub(super) fn steps_left(&self, most: u64) -> u64 {
        most.saturating_sub(self.before.steps)
    }

    /// What is left of so much time.
    pub(super) fn time_left(&self, limit: Duration) -> Duration {
        limit.saturating_sub(Duration::from_millis(self.before.millis))
    }

    /// What its model calls have cost.
    pub(super) fn usage(&self) -> TokenCount {
        self.spent.usage
    }

    /// Tells viewers.
    pub(super) fn tell(&self, news: SubagentNews) {
        let (task_id, model_name) = (self.ctx.call_id.clone(), self.model.to_owned());
        self.ctx
            .run
            .sink
            .emit(AgentEvent::Subagent(Box::new(SubagentEvent {
                task_id,
                model_name,
                usage: self.usage(),
                news,
            })));
    }

    /// Tells viewers of the messages that they do not know yet.
    pub(super) fn tell_messages(&mut self) {
        let is_new = |message: &&Message| {
            is_told(message)
                && message
                    .id
                    .as_ref()
                    .is_some_and(|id| !self.told.contains(id))
        };
        let new: Vec<Message> = self
            .reached
            .messages()
            .iter()
            .filter(is_new)
            .cloned()
            .collect();
        let total = self.told.len() + new.len();
        for message in new {
            self.told.extend(message.id.clone());
            self.tell(SubagentNews::Said {
                message,
                index: self.told.len(),
                total,
            });
        }
    }
}

/// Answers and results are told; what the framework writes in between is not.
fn is_told(message: &Message) -> bool {
    matches!(
        message.kind,
        MessageKind::Ai { .. } | MessageKind::Tool { .. }
    )
}

impl NestedListener for Watch<'_> {
    fn hear(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::ModelCall(call) if call.caller == self.caller => {
                self.spent.usage = call
                    .usage
                    .iter()
                    .fold(self.spent.usage, |sum, usage| sum.and(usage));
            }
            AgentEvent::Step(step) => {
                self.reached = step.state.clone();
                self.spent.steps = self.before.steps + step.steps;
                // By then nothing changes the newest messages any more.
                if step.checkpoint {
                    self.tell_messages();
                }
            }
            _ => {}
        }
    }

    fn keep(&self) -> Value {
        let worked = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        json!(Spent {
            millis: self.before.millis.saturating_add(worked),
            ..self.spent
        })
    }
}
