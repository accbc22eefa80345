//! Turns of a flow's nodes as model calls for the journal and the token count.

use deerflow_core::messages::{Message, UsageMetadata};
use deerflow_runtime::agent::{AgentEvent, ModelCallRecord, Task};

use super::steps::StepReporter;
use crate::compiled::{Driver, NodeIndex};
use crate::driver::Progress;

impl StepReporter {
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
        let text = if progress.flow.limits.persist_events {
            output.as_text()
        } else {
            Default::default()
        };
        let message = Message::ai(text).with(|body| body.id = Some(task.id.clone()));
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
