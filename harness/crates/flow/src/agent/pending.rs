//! Pending tasks of a flow, its open questions, and what a node published, as clients receive them.

use deerflow_core::state::StateUpdate;
use deerflow_runtime::checkpoint::PendingTask;
use serde_json::{Map, Value, json};

use crate::compiled::CompiledFlow;
use crate::machine::{FlowMachine, Question, VisitStage};

/// Returns a question as clients receive it.
pub(super) fn question_json(question: &Question) -> Value {
    json!({ "value": question.value, "id": question.id })
}

/// Returns the values of a node that viewers of updates receive: ports and output.
pub(super) fn published(values: &Map<String, Value>) -> StateUpdate {
    let mut update = StateUpdate::default();
    let has_value = |entries: &Map<String, Value>| entries.values().any(|entry| !entry.is_null());
    for channel in ["ports", "outputs"] {
        if let Some(Value::Object(entries)) = values.get(channel)
            && has_value(entries)
        {
            update = update.and(channel, entries.clone().into());
        }
    }
    update
}

/// Returns the visits of the current superstep without a result.
pub(super) fn pending_tasks(flow: &CompiledFlow, machine: &FlowMachine) -> Vec<PendingTask> {
    let open = machine.active().iter().filter(|visit| {
        !matches!(
            visit.stage,
            VisitStage::Committed(_) | VisitStage::Finished(_)
        )
    });
    open.map(|visit| {
        let id = machine.task_id(flow, visit.node).to_string();
        let mut task = PendingTask::new(id, &*flow.nodes[visit.node].id);
        match &visit.stage {
            VisitStage::Asking(asking) => {
                let unanswered = |question: &&Question| !asking.answers.contains_key(&question.id);
                let open = asking.questions.iter().filter(unanswered);
                task.interrupts = open.map(question_json).collect();
            }
            VisitStage::Failed(error) => task.error = Some(error.message.clone()),
            _ => {}
        }
        task
    })
    .collect()
}

/// Returns one update with the values of two, which have no channel in common.
pub(super) fn both(mut update: StateUpdate, other: StateUpdate) -> StateUpdate {
    update.messages.extend(other.messages);
    update.channels.extend(other.channels);
    update
}
