//! Pending tasks after an external change of a thread's state.

use std::collections::HashSet;
use std::sync::Arc;

use deerflow_domain::threads::ThreadRecord;
use harness::runtime::agent::{Agent, AssistantPin, NodeWrite, NodeWritten, UnknownAssistant};
use harness::runtime::checkpoint::{PendingTask, Snapshot};
use harness::runtime::runs::GotoTarget;
use harness::state::ThreadState;
use serde_json::{Map, Value};

use super::update::Update;
use crate::error::ApiError;
use crate::state::GatewayState;

/// The pending tasks, and the agent's saved position if the state does not imply it.
#[derive(Default)]
pub(super) struct PendingTasks {
    pub(super) next: Vec<PendingTask>,
    pub(super) machine: Option<Value>,
}

/// Returns the agent of a thread's last run, or of the default assistant: of the version that the
/// thread continues with from `base`.
pub(super) async fn thread_agent(
    state: &GatewayState,
    record: &ThreadRecord,
    base: Option<&Snapshot>,
) -> Result<Arc<dyn Agent>, UnknownAssistant> {
    let assistants = &state.agent_services.assistants;
    let assistant = match &record.assistant {
        Some(assistant) => assistant.clone(),
        None => {
            let default = assistants.default_assistant().await;
            default.map(|info| info.name).unwrap_or_default()
        }
    };
    let pin = base.and_then(|base| AssistantPin::in_metadata(&base.meta.metadata, &assistant));
    assistants
        .resolve_pinned(&assistant, &Map::new(), pin.as_ref())
        .await
}

/// Returns the state and position after an update that is written as a node, if the agent has
/// positions of its own.
pub(super) fn node_write(
    state: &GatewayState,
    agent: &Result<Arc<dyn Agent>, UnknownAssistant>,
    update: &Update,
    before: &ThreadState,
    machine: Option<&Value>,
) -> Result<Option<NodeWritten>, ApiError> {
    let (Some(node), Ok(agent)) = (update.as_node.as_deref(), agent) else {
        return Ok(None);
    };
    let write = NodeWrite {
        node,
        values: update.values.clone(),
        state: before,
        machine,
        seed: state.process.ids.random(),
    };
    agent
        .write_as(write)
        .map_err(|error| ApiError::of_input(error, "values"))
}

/// Returns the pending tasks after a change: unchanged, or the successors and targets of the nodes
/// named by `as_node`. Only the latter need the agent.
pub(super) fn pending_tasks(
    state: &GatewayState,
    agent: &Result<Arc<dyn Agent>, UnknownAssistant>,
    updates: &[Update],
    base: Option<&Snapshot>,
    after: &ThreadState,
) -> Result<PendingTasks, ApiError> {
    let as_nodes: Vec<&str> = updates
        .iter()
        .filter_map(|update| update.as_node.as_deref())
        .collect();
    if as_nodes.is_empty() {
        return Ok(base
            .map(|base| PendingTasks {
                next: base.meta.next.clone(),
                machine: base.meta.machine.clone(),
            })
            .unwrap_or_default());
    }
    let agent = agent.as_ref().map_err(UnknownAssistant::clone)?;
    let nodes = agent.nodes();
    let known = |name: &str| nodes.iter().any(|known| known == name);
    let explicit_targets = || {
        updates
            .iter()
            .flat_map(|update| &update.goto)
            .filter(|target| target.node != "__end__")
    };
    let mut named = as_nodes
        .iter()
        .filter(|node| !matches!(**node, "__start__" | "__end__"))
        .copied()
        .chain(explicit_targets().map(|to| &*to.node));
    if let Some(unknown) = named.find(|node| !known(node)) {
        let unknown: String = unknown.chars().take(80).collect();
        return Err(ApiError::BadRequest(format!(
            "Node {unknown} does not exist"
        )));
    }
    let open_calls = after
        .messages()
        .last()
        .map_or(0, |message| message.tool_calls().len());
    let follower = |node: &str| match node {
        "__start__" if !known("model") => nodes.first().map(String::as_str),
        "__start__" | "tools" if known("model") => Some("model"),
        "model" if open_calls > 0 && known("tools") => Some("tools"),
        _ => None,
    };
    let followers = as_nodes
        .iter()
        .filter_map(|node| follower(node))
        .map(|node| GotoTarget {
            node: node.to_owned(),
            input: None,
        });
    let mut seen = HashSet::new();
    // Each node is pending once, except for additional inputs sent to it.
    let is_new = |target: &GotoTarget| target.input.is_some() || seen.insert(target.node.clone());
    let targets: Vec<GotoTarget> = followers
        .chain(explicit_targets().cloned())
        .filter(is_new)
        .collect();
    let task = |target: &GotoTarget| {
        PendingTask::new(state.process.ids.random().to_string(), &target.node)
    };
    // Each tool call of an answer is a separate task.
    let tasks = |target: &GotoTarget| {
        if target.node == "tools" && target.input.is_none() {
            open_calls.max(1)
        } else {
            1
        }
    };
    let next = targets
        .iter()
        .flat_map(|target| (0..tasks(target)).map(move |_| task(target)))
        .collect();
    // Without an explicit target, the state implies the position.
    let machine = if explicit_targets().next().is_some() {
        agent.parked(targets, state.process.ids.random())
    } else {
        None
    };
    Ok(PendingTasks { next, machine })
}
