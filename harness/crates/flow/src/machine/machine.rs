//! State machine of a flow. It decides which nodes run next, receives their results, and does no
//! I/O: time and jitter come in as arguments.

use std::collections::BTreeMap;

use deerflow_runtime::runs::NodeSelector;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::activation::{Activation, PendingVisit, Question, VisitStage};
use super::data::RunData;
use super::ledger::Ledger;
use super::sessions::SessionRecord;
use crate::adapter::{ErrorCategory, FlowError};
use crate::compiled::{CompiledFlow, NodeIndex};

/// Version of the serialized form.
const VERSION: u32 = 1;

/// Maximum size of all outputs and ports of a run in bytes, unless the application names another.
pub const MAX_STATE_BYTES: usize = 8 << 20;

/// Limits and breakpoints of a run; not part of the saved machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunBounds {
    /// Maximum number of supersteps of the run.
    pub recursion_limit: u64,
    /// Stop before these nodes.
    pub interrupt_before: NodeSelector,
    /// Stop after these nodes.
    pub interrupt_after: NodeSelector,
    /// Maximum size of all outputs and ports, in bytes.
    pub max_state_bytes: usize,
}

impl Default for RunBounds {
    fn default() -> Self {
        Self {
            recursion_limit: 100,
            interrupt_before: NodeSelector::None,
            interrupt_after: NodeSelector::None,
            max_state_bytes: MAX_STATE_BYTES,
        }
    }
}

/// Progress of the current run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct RunProgress {
    #[serde(skip)]
    pub(super) bounds: RunBounds,
    /// Supersteps of this run.
    pub(super) steps: u64,
    /// The current step may run although `interrupt_before` names a node of it, because the run was
    /// started to resume there.
    pub(super) released: bool,
    /// Node of the last step that `interrupt_after` names.
    pub(super) halted: Option<NodeIndex>,
}

/// Scheduling state of a flow. [`RunData`] holds the values. Both belong to one content of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowMachine {
    version: u32,
    content_hash: String,
    seed: Uuid,
    pub(super) step: u64,
    pub(super) sequence: u64,
    pub(super) active: Vec<Activation>,
    pub(super) waiting: BTreeMap<NodeIndex, Activation>,
    pub(super) ledger: Ledger,
    pub(super) sessions: BTreeMap<String, SessionRecord>,
    pub(super) run: RunProgress,
}

/// Next action of the driver.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Run these visits of the superstep, given by position, in this order.
    Run(Vec<usize>),
    /// Stop at a breakpoint of this node.
    Breakpoint(NodeIndex),
    /// Stop until these questions have answers.
    Interrupted(Vec<Question>),
    /// The run is complete.
    Finished,
    /// The run fails.
    Failed(FlowError),
}

impl FlowMachine {
    /// Creates a machine at the start node. `seed` makes its task ids unique.
    pub fn new(flow: &CompiledFlow, bounds: RunBounds, seed: Uuid, now_ms: u64) -> Self {
        let mut machine = Self {
            version: VERSION,
            content_hash: flow.content_hash.clone(),
            seed,
            step: 1,
            sequence: 0,
            active: Vec::new(),
            waiting: BTreeMap::new(),
            ledger: Ledger {
                started_at_ms: now_ms,
                ..Ledger::default()
            },
            sessions: BTreeMap::new(),
            run: RunProgress {
                bounds,
                ..RunProgress::default()
            },
        };
        machine.active.push(Activation {
            node: flow.start,
            sources: Vec::new(),
            carried: Vec::new(),
            visit: 1,
            stage: VisitStage::Pending(PendingVisit::default()),
        });
        machine
    }

    /// Restores a saved machine. It continues the same run, unless [`Self::begin_run`] is called.
    ///
    /// # Errors
    /// `state_unreadable`, if the machine is of another version or of another content of the flow,
    /// or if it names a node that the flow does not have.
    pub fn restore(
        flow: &CompiledFlow,
        bounds: RunBounds,
        saved: serde_json::Value,
    ) -> Result<Self, FlowError> {
        let unreadable =
            |message: String| FlowError::new("state_unreadable", ErrorCategory::Engine, message);
        let mut machine: Self = serde_json::from_value(saved)
            .map_err(|error| unreadable(format!("the saved flow is unreadable: {error}")))?;
        if machine.version != VERSION {
            let version = machine.version;
            return Err(unreadable(format!(
                "the saved flow has version {version}, but this engine reads version {VERSION}"
            )));
        }
        if machine.content_hash != flow.content_hash {
            return Err(unreadable(
                "the saved run belongs to another content of the flow".into(),
            ));
        }
        let activations = machine.active.iter().chain(machine.waiting.values());
        let mut nodes = activations.flat_map(|activation| {
            let related = activation.sources.iter().chain(&activation.carried);
            related.copied().chain([activation.node])
        });
        if nodes.any(|node| node >= flow.nodes.len()) {
            return Err(unreadable(
                "the saved flow names a node that does not exist".into(),
            ));
        }
        machine.run.bounds = bounds;
        Ok(machine)
    }

    /// Returns the next decision. Has no side effects.
    pub fn next(&self, flow: &CompiledFlow) -> Decision {
        let failed = self.active.iter().find_map(|visit| match &visit.stage {
            VisitStage::Failed(error) => Some((**error).clone()),
            _ => None,
        });
        if let Some(error) = failed {
            return Decision::Failed(error);
        }
        if self.active.is_empty() {
            return Decision::Finished;
        }
        let is_pending = |stage: &VisitStage| matches!(stage, VisitStage::Pending(_));
        let pending: Vec<usize> = (0..self.active.len())
            .filter(|position| is_pending(&self.active[*position].stage))
            .collect();
        let Some(first) = pending.first() else {
            return Decision::Interrupted(self.questions());
        };
        if let Some(node) = self.breakpoint(flow, &pending) {
            return Decision::Breakpoint(node);
        }
        let limit = self.run.bounds.recursion_limit;
        if self.run.steps >= limit {
            let node = flow.nodes[self.active[*first].node].id.to_string();
            let message = format!("the limit of {limit} supersteps is reached before {node:?}");
            let error = FlowError::new("recursion_limit", ErrorCategory::Engine, message);
            return Decision::Failed(error.at_node(node));
        }
        Decision::Run(pending)
    }

    fn breakpoint(&self, flow: &CompiledFlow, pending: &[usize]) -> Option<NodeIndex> {
        let run = &self.run;
        if run.halted.is_some() {
            return run.halted;
        }
        if run.released || run.bounds.interrupt_before == NodeSelector::None {
            return None;
        }
        let nodes = pending.iter().map(|position| self.active[*position].node);
        nodes
            .into_iter()
            .find(|node| run.bounds.interrupt_before.selects(&flow.nodes[*node].id))
    }

    /// Returns the open questions, in activation order.
    pub fn questions(&self) -> Vec<Question> {
        let asking = self.active.iter().filter_map(|visit| match &visit.stage {
            VisitStage::Asking(asking) => Some(asking),
            _ => None,
        });
        asking
            .flat_map(|asking| {
                let open = |question: &&Question| !asking.answers.contains_key(&question.id);
                asking.questions.iter().filter(open).cloned()
            })
            .collect()
    }

    /// Returns the visits of the current superstep, in activation order.
    pub fn active(&self) -> &[Activation] {
        &self.active
    }

    /// Returns the nodes that wait for others, in declaration order.
    pub fn waiting(&self) -> impl Iterator<Item = NodeIndex> + '_ {
        self.waiting.keys().copied()
    }

    /// Returns the nodes that run next: those of the current superstep without a committed result.
    pub fn next_nodes(&self) -> Vec<NodeIndex> {
        let open = |visit: &&Activation| !matches!(visit.stage, VisitStage::Committed(_));
        self.active
            .iter()
            .filter(open)
            .map(|visit| visit.node)
            .collect()
    }

    /// Returns the number of the current superstep, from 1.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Returns the supersteps that this run completed.
    pub fn steps_of_run(&self) -> u64 {
        self.run.steps
    }

    /// Returns turns, tokens and cost.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Returns the hash of the flow's content.
    pub fn content_hash(&self) -> &str {
        &self.content_hash
    }

    /// Returns the id of the task that visits `node` in the current superstep. Every process
    /// derives the same id.
    pub fn task_id(&self, flow: &CompiledFlow, node: NodeIndex) -> Uuid {
        let name = format!("{}:{}", self.step, flow.nodes[node].id);
        Uuid::new_v5(&self.seed, name.as_bytes())
    }

    /// Records the session of an agent; `None` forgets it.
    pub fn set_session(&mut self, agent_id: &str, session: Option<SessionRecord>) {
        match session {
            Some(session) => self.sessions.insert(agent_id.to_owned(), session),
            None => self.sessions.remove(agent_id),
        };
    }

    /// Returns the sessions by agent id.
    pub fn sessions(&self) -> impl Iterator<Item = (&str, &SessionRecord)> {
        self.sessions
            .iter()
            .map(|(agent, session)| (agent.as_str(), session))
    }

    /// Creates a visit of a node that becomes active.
    pub(super) fn activation(data: &RunData, node: NodeIndex) -> Activation {
        Activation {
            node,
            sources: Vec::new(),
            carried: Vec::new(),
            visit: data.visits(node) + 1,
            stage: VisitStage::Pending(PendingVisit::default()),
        }
    }
}
