//! What a run leaves behind besides its state: the journal, the token count, the title.

mod answers;
mod delivery;
mod events;
mod subagents;
mod title;
mod tokens;

pub(super) use delivery::RunDelivery;
pub(super) use events::{HUMAN_INPUT, MEMORY_CONTEXT, RunEventCallback};
pub(super) use subagents::OpenSubagents;
pub(super) use title::RunTitleCallback;
pub(super) use tokens::RunTokenCallback;

use super::record::RunCompletionData;
use super::store::NewRunEvent;
use crate::runtime::agent::{AgentEvent, SubagentEvent};
use crate::state::ThreadState;

/// The callbacks of one run.
#[derive(Debug)]
pub(super) struct Callbacks {
    pub(super) events: RunEventCallback,
    tokens: RunTokenCallback,
    title: RunTitleCallback,
    subagents: OpenSubagents,
    delivery: RunDelivery,
    /// What former attempts added up to.
    former: RunCompletionData,
}

impl Callbacks {
    /// Of a run whose former attempts added up to `former`.
    pub(super) fn new(events: RunEventCallback, former: RunCompletionData) -> Self {
        Self {
            events,
            tokens: RunTokenCallback::default(),
            title: RunTitleCallback::default(),
            subagents: OpenSubagents::default(),
            delivery: RunDelivery::default(),
            former,
        }
    }

    /// Hears of one event. Tokens and what calls print are none of its business and cost nothing.
    pub(super) fn hear(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::Token(..) | AgentEvent::LiveOutput(_) => return,
            // What an agent inside a call says is no part of the transcript; what it costs counts.
            AgentEvent::Nested(_, inside) => return self.hear_inside(inside),
            AgentEvent::Subagent(news) => self.subagents.hear(news),
            AgentEvent::TaskEnd(task, end) => self.delivery.hear(task, end),
            _ => {}
        }
        self.tokens.hear(event);
        self.title.hear(event);
        self.events.hear(event);
    }

    fn hear_inside(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::Nested(_, inside) => self.hear_inside(inside),
            AgentEvent::ModelCall(call) => {
                self.tokens.hear(event);
                self.events.model_call_inside(call);
            }
            AgentEvent::MiddlewareAction(_) => self.events.hear(event),
            _ => {}
        }
    }

    /// How the subagents end that are under way when the run is stopped.
    pub(super) fn cut_subagents(&self) -> Vec<SubagentEvent> {
        self.subagents.cut()
    }

    /// The end of the run, which found `before` and reached `after`.
    pub(super) fn run_ended(
        &mut self,
        status: &str,
        error: Option<(&str, &str)>,
        before: &ThreadState,
        after: &ThreadState,
    ) {
        self.events.run_ended(status, error, after);
        self.events.delivered(self.delivery.receipt(before, after));
    }

    /// Journal rows since the last call.
    pub(super) fn flush(&mut self) -> Vec<NewRunEvent> {
        self.events.flush()
    }

    /// What the run adds up to so far, over all attempts.
    pub(super) fn completion_data(&self) -> RunCompletionData {
        let said = (
            self.events.first_human_text(),
            self.events.last_answer_text(),
        );
        self.former.clone().and(
            self.tokens
                .completion_data(self.events.message_count(), said),
        )
    }

    /// The title the run saw.
    pub(super) fn title(&self) -> Option<String> {
        self.title.title()
    }
}
