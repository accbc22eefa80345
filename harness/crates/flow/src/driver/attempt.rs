//! An attempt of a visit, and what the visits of a run share.

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::deps::{FlowEnd, FlowOptions, FlowPorts, FlowStart};
use super::emitter::Emitter;
use super::sessions::SessionPool;
use crate::adapter::Usage;
use crate::compiled::{CompiledFlow, NodeIndex};
use crate::machine::{Activation, AttemptOutcome, NodeInput, RunInput, Totals};

/// Runs a flow within a run.
pub(super) type RunNested = for<'a> fn(Level<'a>) -> BoxFuture<'a, FlowEnd>;

/// A flow that runs: at depth 0 the flow of the run, deeper a sub-flow.
pub(super) struct Level<'a> {
    pub(super) flow: &'a CompiledFlow,
    pub(super) start: FlowStart,
    pub(super) options: &'a FlowOptions,
    pub(super) ports: &'a FlowPorts,
    /// `outer/` within a sub-flow.
    pub(super) prefix: String,
    pub(super) depth: usize,
    /// Makes the task ids of a fresh start unique.
    pub(super) seed: Uuid,
    /// `true` if the hooks observe this flow: that of the run, or a sub-flow with hooks of its own.
    pub(super) is_observed: bool,
}

/// State that the visits of a run share.
pub(super) struct RunScope<'a> {
    pub(super) flow: &'a CompiledFlow,
    pub(super) ports: &'a FlowPorts,
    pub(super) options: &'a FlowOptions,
    pub(super) emitter: Emitter,
    pub(super) sessions: SessionPool,
    pub(super) input: RunInput,
    /// Number of enclosing flows.
    pub(super) depth: usize,
    /// Runs a sub-flow.
    pub(super) run_nested: RunNested,
    /// `true` if the hooks observe this flow.
    pub(super) is_observed: bool,
}

impl RunScope<'_> {
    /// Returns the id of a node as the hooks know it.
    pub(super) fn hook_node(&self, node: &str) -> String {
        if self.is_observed {
            node.to_owned()
        } else {
            self.emitter.node_id(node)
        }
    }
}

/// An attempt to run.
pub(super) struct Attempt {
    pub(super) position: usize,
    pub(super) node: NodeIndex,
    pub(super) visit: u64,
    pub(super) number: u32,
    pub(super) task_id: Uuid,
    pub(super) sources: Vec<NodeIndex>,
    pub(super) delay_ms: u64,
    pub(super) input: NodeInput,
    pub(super) answer: Option<Value>,
    pub(super) nested: Option<Value>,
    /// Outcome that needs no effect, or the refusal of a budget.
    pub(super) decided: Option<AttemptOutcome>,
}

/// End of an attempt.
pub(super) struct AttemptEnd {
    pub(super) attempt: Attempt,
    pub(super) outcome: AttemptOutcome,
    pub(super) report: AttemptReport,
}

/// Usage of an attempt.
#[derive(Default)]
pub(super) struct AttemptReport {
    pub(super) is_turn: bool,
    pub(super) usage: Usage,
    pub(super) duration_ms: u64,
    pub(super) proposal: Option<Map<String, Value>>,
    pub(super) nested: Option<Totals>,
}

impl Attempt {
    pub(super) fn of(visit: &Activation, position: usize, task_id: Uuid, input: NodeInput) -> Self {
        Self {
            position,
            node: visit.node,
            visit: visit.visit,
            number: 1,
            task_id,
            sources: visit.sources.clone(),
            delay_ms: 0,
            input,
            answer: None,
            nested: None,
            decided: None,
        }
    }
}
