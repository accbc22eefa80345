//! End of a superstep: the edges that are taken, joins, and the next active nodes.

use std::collections::HashMap;
use std::sync::Arc;

use super::activation::{Activation, Route, VisitStage};
use super::data::RunData;
use super::machine::FlowMachine;
use super::routing;
use crate::compiled::{CompiledFlow, Driver, Join, NodeIndex};

/// An edge that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenEdge {
    /// Node that it leaves.
    pub from: NodeIndex,
    /// Node that it enters.
    pub to: NodeIndex,
    /// Handle that it leaves.
    pub handle: Option<Arc<str>>,
}

impl FlowMachine {
    /// Returns `true` if all visits of the superstep are committed.
    pub fn step_complete(&self) -> bool {
        let committed = |visit: &Activation| matches!(visit.stage, VisitStage::Committed(_));
        !self.active.is_empty() && self.active.iter().all(committed)
    }

    /// Ends a complete superstep and activates the next nodes. Returns the edges taken. Does
    /// nothing if the superstep is not complete.
    pub fn end_step(&mut self, flow: &CompiledFlow, data: &RunData) -> Vec<TakenEdge> {
        if !self.step_complete() {
            return Vec::new();
        }
        let done = std::mem::take(&mut self.active);
        let after = &self.run.bounds.interrupt_after;
        self.run.halted = done
            .iter()
            .map(|visit| visit.node)
            .find(|node| after.selects(&flow.nodes[*node].id));
        self.run.steps += 1;
        self.run.released = false;
        self.step += 1;
        let mut taken = Vec::new();
        let mut next = NextStep::default();
        for visit in done {
            let VisitStage::Committed(route) = &visit.stage else {
                continue;
            };
            let carried = carried_by(flow, data, &visit);
            let last = carried.last().copied();
            for edge in routing::edges(flow, data, visit.node, last, route) {
                let (from, to) = (visit.node, edge.target);
                taken.push(TakenEdge {
                    from,
                    to,
                    handle: edge.handle.clone(),
                });
                self.arrive(
                    flow,
                    data,
                    &mut next,
                    Arrival {
                        from,
                        to,
                        carried: &carried,
                    },
                );
            }
        }
        self.active = next.active;
        self.release_waiting(flow);
        taken
    }

    /// Activates the targets of a node's edges in the current superstep, next to those that are
    /// active.
    pub(super) fn follow(
        &mut self,
        flow: &CompiledFlow,
        data: &RunData,
        node: NodeIndex,
        route: &Route,
    ) {
        let mut next = NextStep::default();
        for visit in std::mem::take(&mut self.active) {
            // A node that already ran in this superstep runs again.
            if matches!(visit.stage, VisitStage::Committed(_)) {
                next.active.push(visit);
            } else {
                next.push(visit);
            }
        }
        for edge in routing::edges(flow, data, node, Some(node), route) {
            let arrival = Arrival {
                from: node,
                to: edge.target,
                carried: &[node],
            };
            self.arrive(flow, data, &mut next, arrival);
        }
        self.active = next.active;
        self.release_waiting(flow);
    }

    fn arrive(
        &mut self,
        flow: &CompiledFlow,
        data: &RunData,
        next: &mut NextStep,
        arrival: Arrival<'_>,
    ) {
        let to = arrival.to;
        if let Some(position) = next.position.get(&to) {
            return arrival.join(&mut next.active[*position]);
        }
        let join = flow.nodes[to].join;
        if join == Join::Any {
            let mut visit = Self::activation(data, to);
            arrival.join(&mut visit);
            return next.push(visit);
        }
        let waiter = self
            .waiting
            .entry(to)
            .or_insert_with(|| Self::activation(data, to));
        arrival.join(waiter);
        let complete = |visit: &Activation| {
            flow.predecessors[to]
                .iter()
                .all(|node| visit.sources.contains(node))
        };
        if join == Join::All
            && complete(waiter)
            && let Some(visit) = self.waiting.remove(&to)
        {
            next.push(visit);
        }
    }

    /// Activates waiting nodes if nothing is active: those that wait for all predecessors, else
    /// those that wait for the end of everything else.
    fn release_waiting(&mut self, flow: &CompiledFlow) {
        if !self.active.is_empty() || self.waiting.is_empty() {
            return;
        }
        let waiting = std::mem::take(&mut self.waiting);
        let (released, deferred): (Vec<_>, Vec<_>) = waiting
            .into_values()
            .partition(|visit| flow.nodes[visit.node].join != Join::Defer);
        if released.is_empty() {
            self.active = deferred;
        } else {
            self.active = released;
            self.waiting = deferred
                .into_iter()
                .map(|visit| (visit.node, visit))
                .collect();
        }
    }
}

/// Nodes of the next superstep in activation order.
#[derive(Default)]
struct NextStep {
    active: Vec<Activation>,
    position: HashMap<NodeIndex, usize>,
}

impl NextStep {
    fn push(&mut self, visit: Activation) {
        self.position.insert(visit.node, self.active.len());
        self.active.push(visit);
    }
}

/// Control that enters a node.
struct Arrival<'a> {
    from: NodeIndex,
    to: NodeIndex,
    carried: &'a [NodeIndex],
}

impl Arrival<'_> {
    fn join(&self, visit: &mut Activation) {
        add_new(&mut visit.sources, &[self.from]);
        add_new(&mut visit.carried, self.carried);
    }
}

fn add_new(list: &mut Vec<NodeIndex>, more: &[NodeIndex]) {
    for node in more {
        if !list.contains(node) {
            list.push(*node);
        }
    }
}

/// Returns the nodes whose texts a visit passes on: itself, or its own sources if it is a control
/// node. A person's answer is added to what it answers.
fn carried_by(flow: &CompiledFlow, data: &RunData, visit: &Activation) -> Vec<NodeIndex> {
    let has_text = data.output(visit.node).is_some();
    match &flow.nodes[visit.node].driver {
        Driver::Agent(_) | Driver::Subflow(_) => vec![visit.node],
        _ if has_text => visit.carried.iter().copied().chain([visit.node]).collect(),
        _ => visit.carried.clone(),
    }
}
