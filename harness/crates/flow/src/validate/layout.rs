//! Checks of the layout against the nodes: it describes and never binds.

use super::model::Model;
use crate::binding::{BindingSource, binding_source};
use crate::finding::{Collector, Finding, FindingCode};
use crate::schema::Flow;

/// Reports bindings of the layout that differ from the nodes, and overrides.
pub(crate) fn check_layout(model: &Model<'_>, flow: &Flow, findings: &mut Collector) {
    let bindings = flow.layout.iter().flat_map(|layout| &layout.node_bindings);
    for (position, binding) in bindings.enumerate() {
        let pointer = format!("/layout/nodeBindings/{position}");
        let id = &binding.node_id;
        let node = model
            .index
            .get(id.as_str())
            .map(|&index| model.nodes[index].node);
        let mismatch = match node.map(binding_source) {
            None => Some(format!(
                "the layout binds `{id}`, which is the id of no node"
            )),
            Some(Some(BindingSource::Reference(agent) | BindingSource::Definition(agent)))
                if agent != binding.agent_id =>
            {
                Some(format!(
                    "the layout names agent `{}` for `{id}`, which runs with `{agent}`",
                    binding.agent_id
                ))
            }
            Some(_) => None,
        };
        if let Some(message) = mismatch {
            findings.add(
                Finding::new(FindingCode::BindingMismatch, message)
                    .at(format!("{pointer}/agentId"))
                    .node(id)
                    .agent(&binding.agent_id),
            );
        }
        if binding
            .overrides
            .as_ref()
            .is_some_and(|overrides| !overrides.is_empty())
        {
            let message = format!(
                "the overrides of `{id}` are reserved and have no effect; change the agent \
                 definition or the node's `config`"
            );
            findings.add(
                Finding::new(FindingCode::ReservedOverrides, message)
                    .at(format!("{pointer}/overrides"))
                    .node(id),
            );
        }
    }
}
