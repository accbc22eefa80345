//! Monitors an active subagent: emits its progress events and counts its usage against its limits.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::agents::{NestedListener, listener_state};
use crate::messages::{Message, MessageKind};
use crate::runtime::agent::{AgentEvent, SubagentEvent, SubagentUpdate, TokenCount};
use crate::state::ThreadState;
use crate::tools::ToolContext;

/// Monitor of one subagent with one task.
pub(super) struct Monitor<'a> {
    ctx: &'a ToolContext,
    model: &'a str,
    /// Caller name of the subagent's model calls.
    caller: &'a str,
    /// Usage of earlier attempts of the call.
    before: Usage,
    /// Total usage so far, without time.
    used: Usage,
    /// Time from which the current attempt counts against the time limit.
    since: Instant,
    /// Ids of the messages that were already emitted.
    reported: HashSet<String>,
    /// Latest state of the subagent.
    pub(super) last_state: Arc<ThreadState>,
}

/// Consumed part of a subagent's limits, over all attempts of its run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Usage {
    usage: TokenCount,
    steps: u64,
    millis: u64,
}

impl<'a> Monitor<'a> {
    /// Creates the monitor of this call and restores the usage of earlier attempts.
    pub(super) fn begin(ctx: &'a ToolContext, model: &'a str, caller: &'a str) -> Self {
        let before = listener_state(ctx)
            .and_then(|saved| Usage::deserialize(saved).ok())
            .unwrap_or_default();
        let last_state = ctx
            .nested
            .as_ref()
            .map(|nested| nested.state.clone())
            .unwrap_or_default();
        let reported = last_state
            .messages()
            .iter()
            .filter(|message| is_reported(message))
            .filter_map(|message| message.id.clone())
            .collect();
        Self {
            ctx,
            model,
            caller,
            before,
            used: before,
            since: Instant::now(),
            reported,
            last_state,
        }
    }

    /// Starts the clock of the time limit.
    pub(super) fn start_clock(&mut self) {
        self.since = Instant::now();
    }

    /// Returns the remaining steps of this limit.
    pub(super) fn steps_left(&self, most: u64) -> u64 {
        most.saturating_sub(self.before.steps)
    }

    /// Returns the remaining time of this limit.
    pub(super) fn time_left(&self, limit: Duration) -> Duration {
        limit.saturating_sub(Duration::from_millis(self.before.millis))
    }

    /// Returns the token usage of its model calls.
    pub(super) fn usage(&self) -> TokenCount {
        self.used.usage
    }

    /// Emits a progress event.
    pub(super) fn emit(&self, update: SubagentUpdate) {
        let (task_id, model_name) = (self.ctx.call_id.clone(), self.model.to_owned());
        self.ctx
            .run
            .sink
            .emit(AgentEvent::Subagent(Box::new(SubagentEvent {
                task_id,
                model_name,
                usage: self.usage(),
                news: update,
            })));
    }

    /// Emits the messages that have not been emitted yet.
    pub(super) fn emit_messages(&mut self) {
        let is_new = |message: &&Message| {
            is_reported(message)
                && message
                    .id
                    .as_ref()
                    .is_some_and(|id| !self.reported.contains(id))
        };
        let new: Vec<Message> = self
            .last_state
            .messages()
            .iter()
            .filter(is_new)
            .cloned()
            .collect();
        let total = self.reported.len() + new.len();
        for message in new {
            self.reported.extend(message.id.clone());
            self.emit(SubagentUpdate::Said {
                message,
                index: self.reported.len(),
                total,
            });
        }
    }
}

/// `true` for answers and tool results; messages that the framework adds are not emitted.
fn is_reported(message: &Message) -> bool {
    matches!(
        message.kind,
        MessageKind::Ai { .. } | MessageKind::Tool { .. }
    )
}

impl NestedListener for Monitor<'_> {
    fn hear(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::ModelCall(call) if call.caller == self.caller => {
                self.used.usage = call
                    .usage
                    .iter()
                    .fold(self.used.usage, |sum, usage| sum.and(usage));
            }
            AgentEvent::Step(step) => {
                self.last_state = step.state.clone();
                self.used.steps = self.before.steps + step.steps;
                // After a checkpoint, the newest messages no longer change.
                if step.checkpoint {
                    self.emit_messages();
                }
            }
            _ => {}
        }
    }

    fn keep(&self) -> Value {
        let worked = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        json!(Usage {
            millis: self.before.millis.saturating_add(worked),
            ..self.used
        })
    }
}
