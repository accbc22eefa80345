//! The result of a flow's run as the answer of the conversation.

use deerflow_core::messages::Message;
use deerflow_core::state::StateUpdate;
use deerflow_runtime::agent::{AgentEvent, ModelCallRecord};
use serde_json::Value;

use super::pending::both;
use super::steps::StepReporter;
use crate::compiled::CompiledFlow;
use crate::machine::{FlowMachine, RunData};

/// Caller of the message with the result of a run.
const RESULT_CALLER: &str = "flow";

impl StepReporter {
    /// Reports the result as a message of the conversation.
    pub(super) fn finish(
        &self,
        flow: &CompiledFlow,
        machine: &FlowMachine,
        data: &RunData,
        result: Option<Value>,
    ) {
        let Some(result) = result else { return };
        let mut reported = self.progress.lock();
        let text = match &result {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let streamed = flow.nodes.iter().enumerate().find_map(|(node, entry)| {
            let invocation = reported.streamed.get(&*entry.id)?;
            let output = data.output(node)?;
            (output.as_text() == text).then_some(invocation)
        });
        let is_streamed = streamed.is_some();
        let id = streamed
            .cloned()
            .unwrap_or_else(|| self.ctx.ids.message_id());
        let message = Message::ai(text).with(|body| {
            body.id = Some(id.clone());
            body.name = Some(self.flow_name.clone());
        });
        let node = reported.last_node.clone();
        self.send(AgentEvent::ModelCall(ModelCallRecord {
            call_id: id,
            caller: RESULT_CALLER.to_owned(),
            model: self.flow_name.clone(),
            message: message.clone(),
            usage: None,
            latency_ms: 0,
        }));
        if !is_streamed && let Some(meta) = reported.tasks.meta(&node) {
            self.send(AgentEvent::Message(message.clone(), meta));
        }
        let update = StateUpdate::messages([message]).and("result", result);
        self.apply(&mut reported, update.clone());
        if let Some((_, end)) = reported.ended.last_mut() {
            let published = end.update.take().unwrap_or_default();
            end.update = Some(both(published, update.clone()));
        }
        self.end_tasks(&mut reported);
        let update = both(std::mem::take(&mut reported.last_update), update);
        self.step(&reported, flow, machine, &node, Some(update), true);
        reported.step += 1;
    }
}
