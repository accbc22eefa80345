//! Model calls of a flow for the journal: those of its nodes, and the result of the run as the
//! answer of the conversation.

use deerflow_core::messages::{Message, UsageMetadata};
use deerflow_core::state::StateUpdate;
use deerflow_runtime::agent::{AgentEvent, ModelCallRecord, Task};
use serde_json::Value;

use super::pending::both;
use super::steps::{Position, StepReporter};
use crate::compiled::{CompiledFlow, Driver, NodeIndex};
use crate::driver::Progress;
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
        let position = Position::new(flow, machine);
        self.step(&reported, position, &node, Some(update), true);
        reported.step += 1;
    }

    /// Reports the turn of a node. `is_counted` states that its agent reported its calls itself.
    pub(super) fn model_call(
        &self,
        progress: &Progress<'_>,
        node: NodeIndex,
        task: &Task,
        is_counted: bool,
    ) {
        let Driver::Agent(agent) = &progress.flow.nodes[node].driver else {
            return;
        };
        let Some(output) = progress.data.output(node) else {
            return;
        };
        let usage = UsageMetadata {
            input_tokens: output.usage.input_tokens,
            output_tokens: output.usage.output_tokens,
            total_tokens: output.usage.total_tokens,
            ..UsageMetadata::default()
        };
        let message = Message::ai(output.as_text()).with(|body| body.id = Some(task.id.clone()));
        self.send(AgentEvent::ModelCall(ModelCallRecord {
            call_id: task.id.clone(),
            caller: format!("flow:{}", agent.agent.agent_id),
            model: agent
                .model
                .clone()
                .unwrap_or_else(|| agent.agent.adapter_kind.clone()),
            message,
            usage: (output.usage.total_tokens > 0 && !is_counted).then_some(usage),
            latency_ms: 0,
        }));
    }
}
