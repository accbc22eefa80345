//! Observers of a run's events, which collect the journal rows, usage and title.

mod bounded;
mod delivery;
mod events;
mod file_changes;
mod human_input;
mod node_events;
mod payload_limits;
mod pending_answers;
mod subagents;
mod title;
mod tokens;

use crate::agent::{AgentEvent, SubagentEvent};
use crate::definition::{RunCompletionData, RunFailure};
use crate::ports::NewRunEvent;
use deerflow_core::state::ThreadState;
pub(crate) use delivery::RunDelivery;
pub(crate) use events::{HUMAN_INPUT, MEMORY_CONTEXT, RunEventCallback};
pub(crate) use subagents::OpenSubagents;
pub(crate) use title::RunTitleCallback;
pub(crate) use tokens::RunTokenCallback;

/// Observers of one run.
#[derive(Debug)]
pub(crate) struct Callbacks {
    pub(crate) events: RunEventCallback,
    tokens: RunTokenCallback,
    title: RunTitleCallback,
    subagents: OpenSubagents,
    delivery: RunDelivery,
    /// Totals of earlier attempts.
    former: RunCompletionData,
}

impl Callbacks {
    /// Creates the observers of a run whose earlier attempts have the totals `former`.
    pub(crate) fn new(events: RunEventCallback, former: RunCompletionData) -> Self {
        Self {
            events,
            tokens: RunTokenCallback::default(),
            title: RunTitleCallback::default(),
            subagents: OpenSubagents::default(),
            delivery: RunDelivery::default(),
            former,
        }
    }

    /// Handles one event. Tokens and live output of calls are skipped, because they are frequent.
    pub(crate) fn on_event(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::Token(..) | AgentEvent::LiveOutput(_) => return,
            // Messages of a nested agent are not part of the transcript, but its usage counts.
            AgentEvent::Nested(_, inside) => return self.on_nested_event(inside),
            AgentEvent::Subagent(subagent_event) => self.subagents.on_event(subagent_event),
            AgentEvent::TaskEnd(task, end) => self.delivery.on_event(task, end),
            _ => {}
        }
        self.tokens.on_event(event);
        self.title.on_event(event);
        self.events.on_event(event);
    }

    fn on_nested_event(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::Nested(_, inside) => self.on_nested_event(inside),
            AgentEvent::ModelCall(call) => {
                self.tokens.on_event(event);
                self.events.nested_model_call(call);
            }
            AgentEvent::MiddlewareAction(_) => self.events.on_event(event),
            _ => {}
        }
    }

    /// Returns events that cancel the subagents which are still running.
    pub(crate) fn cancel_open_subagents(&self) -> Vec<SubagentEvent> {
        self.subagents.cancelled()
    }

    /// Handles the end of the run, which started with the state `before` and ended with the state
    /// `after`.
    pub(crate) fn run_ended(
        &mut self,
        status: &str,
        failure: Option<&RunFailure>,
        before: &ThreadState,
        after: &ThreadState,
    ) {
        self.events.run_ended(status, failure, after);
        self.events.delivered(self.delivery.receipt(before, after));
    }

    /// Takes the journal rows since the last call.
    pub(crate) fn flush(&mut self) -> Vec<NewRunEvent> {
        self.events.flush()
    }

    /// Returns the totals so far, over all attempts.
    pub(crate) fn completion_data(&self) -> RunCompletionData {
        let texts = (
            self.events.first_human_excerpt(),
            self.events.last_answer_excerpt(),
        );
        self.former.clone().and(
            self.tokens
                .completion_data(self.events.message_count(), texts),
        )
    }

    /// Returns the last title of the thread that the run emitted.
    pub(crate) fn title(&self) -> Option<String> {
        self.title.title()
    }
}
