//! Sends the events of a flow to the runtime: output of turns as message fragments, all other
//! events to viewers of `custom`.

use std::sync::Arc;

use deerflow_core::messages::MessageChunk;
use deerflow_runtime::agent::AgentEvent;

use super::steps::StepReporter;
use crate::adapter::TurnDelta;
use crate::events::{EventBody, FlowEvent, FlowEventSink};

/// Receiver of a flow's events, or of a sub-flow's.
#[derive(Debug)]
pub(super) struct Journal {
    reporter: Arc<StepReporter>,
    /// `outer/` within a sub-flow.
    prefix: String,
}

impl Journal {
    pub(super) fn new(reporter: Arc<StepReporter>) -> Self {
        Self::inside(reporter, "")
    }

    /// Creates the receiver of a sub-flow's events. Their nodes begin with `prefix`.
    pub(super) fn inside(reporter: Arc<StepReporter>, prefix: &str) -> Self {
        Self {
            reporter,
            prefix: prefix.to_owned(),
        }
    }
}

impl FlowEventSink for Journal {
    fn emit(&self, event: FlowEvent) {
        let FlowEvent {
            body: EventBody::Delta(delta),
            node_id,
            invocation_id,
            ..
        } = &event
        else {
            let event = AgentEvent::NodeEvent(event.to_value());
            self.reporter.send_for_run(event);
            return;
        };
        let (Some(node), Some(invocation)) = (node_id, invocation_id) else {
            return;
        };
        let node = node.strip_prefix(&self.prefix).unwrap_or(node);
        if let Some(meta) = self.reporter.streaming(node, invocation) {
            self.reporter
                .send(AgentEvent::Token(Box::new(chunk(invocation, delta)), meta));
        }
    }
}

fn chunk(invocation: &str, delta: &TurnDelta) -> MessageChunk {
    let mut chunk = MessageChunk::empty(invocation);
    chunk.content.clone_from(&delta.text);
    if !delta.reasoning.is_empty() {
        let reasoning = delta.reasoning.as_str().into();
        chunk
            .additional_kwargs
            .insert("reasoning_content".to_owned(), reasoning);
    }
    chunk
}
