//! Sends the events of a flow to the runtime: output of turns as message fragments, all other
//! events to viewers of `custom`.

use deerflow_core::json_size::nesting;
use deerflow_core::messages::MessageChunk;
use deerflow_runtime::agent::AgentEvent;
use deerflow_runtime::runs::store::EventContent;
use serde_json::value::to_raw_value;

use super::steps::StepReporter;
use crate::adapter::TurnDelta;
use crate::events::{EventBody, FlowEvent, FlowEventSink};

/// Maximum nesting of an event that is sent as JSON text. Parsers stop at 128.
const MAX_TEXT_NESTING: usize = 100;

impl FlowEventSink for StepReporter {
    fn emit(&self, event: FlowEvent) {
        let FlowEvent {
            body: EventBody::Delta(delta),
            node_id,
            invocation_id,
            ..
        } = &event
        else {
            let payload = content_of(&event);
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

/// Returns an event as the content of a journal row: as JSON text, unless a parser of the text could
/// reach its limit.
fn content_of(event: &FlowEvent) -> EventContent {
    match to_raw_value(event) {
        Ok(json) if nesting(json.get().as_bytes()) <= MAX_TEXT_NESTING => json.into(),
        _ => event.to_value().into(),
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

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::*;

    fn started(value: Value) -> FlowEvent {
        FlowEvent {
            event_id: "e".to_owned(),
            run_id: "r".into(),
            node_id: Some("a".to_owned()),
            agent_id: None,
            invocation_id: None,
            timestamp: Default::default(),
            body: EventBody::NodeStarted {
                kind: "agent.sub".to_owned(),
                visit: 1,
                inputs: Map::from_iter([("data".to_owned(), value)]),
            },
        }
    }

    #[test]
    fn event_of_any_depth_reads_as_an_object() {
        for depth in [1, 96, 97, 126, 200] {
            let event = started((0..depth).fold(json!("}]\""), |inner, _| json!([inner])));
            let content = content_of(&event);
            assert_eq!(content["nodeId"], "a", "{depth}");
            assert_eq!(content, event.to_value(), "{depth}");
        }
    }
}
