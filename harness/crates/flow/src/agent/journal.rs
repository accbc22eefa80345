//! Sends the events of a flow to the runtime: output of turns as message fragments, all other
//! events to viewers of `custom`.

use deerflow_core::messages::MessageChunk;
use deerflow_runtime::agent::AgentEvent;
use serde_json::value::to_raw_value;

use super::steps::StepReporter;
use crate::adapter::TurnDelta;
use crate::events::{EventBody, FlowEvent, FlowEventSink};

impl FlowEventSink for StepReporter {
    fn emit(&self, event: FlowEvent) {
        let FlowEvent {
            body: EventBody::Delta(delta),
            node_id,
            invocation_id,
            ..
        } = &event
        else {
            let payload = match to_raw_value(&event) {
                Ok(json) => json.into(),
                Err(error) => return tracing::error!(%error, "cannot serialize a flow's event"),
            };
            let is_recorded = self.records_turns || event.body.is_lifecycle();
            self.send_for_run(if is_recorded {
                AgentEvent::NodeEvent(payload)
            } else {
                AgentEvent::Unrecorded(payload)
            });
            return;
        };
        let (Some(node), Some(invocation)) = (node_id, invocation_id) else {
            return;
        };
        if let Some(meta) = self.streaming(self.own_node(node), invocation) {
            self.send(AgentEvent::Token(Box::new(chunk(invocation, delta)), meta));
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
