//! Checks of agents and of the bindings of nodes.

use std::collections::HashSet;

use super::model::{Model, NodeModel};
use super::options::Options;
use crate::assets::PromptAssetManifest;
use crate::binding::{Binder, Binding, BindingSource, KnownAdapters, binding_source};
use crate::finding::{Collector, Finding, FindingCode};
use crate::kinds::KindDriver;
use crate::schema::Flow;

/// Reports two definitions with one id.
pub(crate) fn check_agent_ids(flow: &Flow, findings: &mut Collector) {
    let mut seen = HashSet::new();
    for (position, agent) in flow.agents.agent_defs.iter().enumerate() {
        if !seen.insert(agent.agent_id.as_str()) {
            let message = format!(
                "the agent id `{}` is used already; give each agent an id of its own",
                agent.agent_id
            );
            findings.add(
                Finding::new(FindingCode::DuplicateAgentId, message)
                    .at(format!("/agents/agentDefs/{position}/agentId"))
                    .agent(&agent.agent_id),
            );
        }
    }
}

/// Binds the agent nodes. Returns the bindings in the order of the nodes; `None` for other nodes
/// and for bindings that are reported.
pub(crate) fn bind_nodes<'d>(
    model: &Model<'d>,
    flow: &'d Flow,
    manifest: &'d PromptAssetManifest,
    adapters: &'d dyn KnownAdapters,
    options: &Options<'_>,
    findings: &mut Collector,
) -> Vec<Option<Binding>> {
    let mut binder = Binder::new(flow, manifest, adapters);
    let mut examined = HashSet::new();
    model
        .nodes
        .iter()
        .map(|node| {
            if node.driver != Some(KindDriver::Agent) {
                return None;
            }
            check_ambiguity(node, findings);
            match binder.bind(node.node) {
                Ok(binding) => {
                    if binding.is_fallback {
                        findings.add(fallback(node, &binding.agent.agent_id));
                    }
                    if options.deep && examined.insert(binding.agent.agent_id.clone()) {
                        let kind = &binding.agent.adapter_kind;
                        let flow_config = binder.flow_config(kind, kind);
                        let problems = adapters.config_findings(&flow_config, &binding.agent);
                        findings_of_adapter(node, &binding, problems, findings);
                    }
                    Some(binding)
                }
                Err(error) => {
                    let field = match binding_source(node.node) {
                        Some(BindingSource::Reference(_)) => "/agentRef",
                        Some(BindingSource::Definition(_)) if node.node.agent_id.is_some() => {
                            "/agentId"
                        }
                        Some(BindingSource::Definition(_)) => "/config/agentId",
                        None => "",
                    };
                    let finding = error.finding().at(node.pointer(field));
                    findings.add(finding.node(&node.node.node_id));
                    None
                }
            }
        })
        .collect()
}

fn check_ambiguity(node: &NodeModel<'_>, findings: &mut Collector) {
    let agent = node.node.agent_id.as_deref().filter(|id| !id.is_empty());
    if let (Some(BindingSource::Reference(reference)), Some(agent)) =
        (binding_source(node.node), agent)
        && reference != agent
    {
        let message = format!(
            "the node names `{reference}` by `agentRef` and `{agent}` by `agentId`; `agentRef` \
             counts"
        );
        findings.add(
            Finding::new(FindingCode::AmbiguousBinding, message)
                .at(node.pointer("/agentId"))
                .node(&node.node.node_id)
                .agent(reference),
        );
    }
}

fn fallback(node: &NodeModel<'_>, agent: &str) -> Finding {
    let message = format!(
        "there is no agent file of `{agent}`; the agent definition of that id is used; name it by \
         `agentId` to state it"
    );
    Finding::new(FindingCode::AgentRefFallback, message)
        .at(node.pointer("/agentRef"))
        .node(&node.node.node_id)
        .agent(agent)
}

fn findings_of_adapter(
    node: &NodeModel<'_>,
    binding: &Binding,
    problems: Vec<crate::adapter::ConfigFinding>,
    findings: &mut Collector,
) {
    for problem in problems {
        let message = format!("{}: {}", problem.code, problem.message);
        findings.add(
            Finding::new(FindingCode::AdapterConfigInvalid, message)
                .at(node.pointer(""))
                .node(&node.node.node_id)
                .agent(&binding.agent.agent_id)
                .field(problem.key),
        );
    }
}
