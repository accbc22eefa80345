//! Nodes that evaluate the work of a plan loop.

use std::collections::HashMap;

use crate::compiled::NodeIndex;
use crate::kinds::KindDriver;
use crate::validate::components::{components, reachable};
use crate::validate::model::Model;

/// Returns the nodes that lead back to each plan loop, in the order of the document: those on a
/// cycle through the loop from which an edge path enters it without passing another loop.
pub(super) fn nodes_of_loops(model: &Model<'_>) -> HashMap<NodeIndex, Vec<NodeIndex>> {
    let targets = model.control_targets();
    let component = components(&targets);
    let mut sources = vec![Vec::new(); targets.len()];
    for (source, targets) in targets.iter().enumerate() {
        for &target in targets {
            sources[target].push(source);
        }
    }
    let driver = |node: NodeIndex| model.nodes[node].driver;
    let is_loop = |node| driver(node).is_some_and(KindDriver::limits_cycles);
    let plan_loops =
        (0..model.nodes.len()).filter(|&node| driver(node) == Some(KindDriver::PlanLoop));
    plan_loops
        .map(|plan_loop| {
            let leads_back = reachable(&sources, plan_loop, is_loop);
            let nodes = (0..model.nodes.len())
                .filter(|&node| leads_back[node] && component[node] == component[plan_loop])
                .collect();
            (plan_loop, nodes)
        })
        .collect()
}
