//! Graphs that run inside of nodes of other graphs: read by name, and put in the place of the nodes.

use std::collections::HashMap;
use std::sync::Arc;

use harness::runtime::agent::{Agent, AgentGraph, GraphEdge, GraphNode};
use serde_json::Map;

use crate::state::GatewayState;

/// Maximum depth of nested graphs.
pub(super) const MAX_DEPTH: usize = 5;
/// Maximum number of agents that are read for one graph.
const MAX_AGENTS: usize = 100;
/// Maximum number of nodes of an expanded graph; further nodes stay as they are.
const MAX_NODES: usize = 2_000;
/// Maximum number of nested graphs that are listed.
const MAX_LISTED: usize = 500;

/// Agents whose graphs run inside of nodes, by name.
pub(super) struct InnerGraphs(HashMap<String, Arc<dyn Agent>>);

/// Receives the path of nodes that leads to a nested graph, its name and its agent.
type Visit<'a, T> = dyn FnMut(&[&str], &str, &Arc<dyn Agent>) -> T + 'a;

impl InnerGraphs {
    /// Reads the agents that the nodes of a graph name, to a depth. Those that cannot run are left
    /// out.
    pub(super) async fn read(state: &GatewayState, outer: AgentGraph, depth: usize) -> Self {
        let mut agents: HashMap<String, Arc<dyn Agent>> = HashMap::new();
        let mut level = vec![outer];
        for _ in 0..depth {
            let names: Vec<String> = level
                .iter()
                .flat_map(|graph| &graph.nodes)
                .filter_map(|node| node.inner.clone())
                .collect();
            level.clear();
            for name in names {
                if agents.contains_key(&name) || agents.len() == MAX_AGENTS {
                    continue;
                }
                let assistants = &state.agent_services.assistants;
                if let Ok(agent) = assistants.resolve(&name, &Map::new()).await {
                    level.push(agent.graph());
                    agents.insert(name, agent);
                }
            }
        }
        Self(agents)
    }

    /// Visits the nested graphs from outside in, with the path of nodes that leads to each.
    pub(super) fn walk(&self, outer: &AgentGraph, depth: usize, visit: &mut Visit<'_, ()>) {
        let mut listed = 0;
        self.walk_within(outer, depth, &mut Vec::new(), &mut |path, name, agent| {
            listed += 1;
            if listed <= MAX_LISTED {
                visit(path, name, agent);
            }
            listed < MAX_LISTED
        });
    }

    /// Walks until `visit` returns `false`.
    fn walk_within(
        &self,
        outer: &AgentGraph,
        depth: usize,
        path: &mut Vec<String>,
        visit: &mut Visit<'_, bool>,
    ) -> bool {
        if depth == 0 {
            return true;
        }
        for node in &outer.nodes {
            let Some((name, agent)) = self.of(node) else {
                continue;
            };
            path.push(node.name.clone());
            let parts: Vec<&str> = path.iter().map(String::as_str).collect();
            let goes_on = visit(&parts, name, agent)
                && self.walk_within(&agent.graph(), depth - 1, path, visit);
            path.pop();
            if !goes_on {
                return false;
            }
        }
        true
    }

    fn of<'a>(&'a self, node: &'a GraphNode) -> Option<(&'a str, &'a Arc<dyn Agent>)> {
        let name = node.inner.as_deref()?;
        Some((name, self.0.get(name)?))
    }
}

/// Puts the nodes of inner graphs, named `node:inner`, in the place of the nodes that run them.
pub(super) fn expanded(outer: AgentGraph, inner: &InnerGraphs, depth: usize) -> AgentGraph {
    let mut graph = outer;
    for _ in 0..depth {
        let Some(next) = expanded_once(&graph, inner) else {
            break;
        };
        graph = next;
    }
    graph
}

/// Expands each node once. `None` if there is nothing to expand, or if the graph gets too large.
fn expanded_once(outer: &AgentGraph, inner: &InnerGraphs) -> Option<AgentGraph> {
    let mut graph = AgentGraph::default();
    let mut replaced: HashMap<&str, AgentGraph> = HashMap::new();
    for node in &outer.nodes {
        match inner.of(node) {
            None => graph.nodes.push(node.clone()),
            Some((_, agent)) => {
                let within = agent.graph();
                let renamed = within.nodes.iter().map(|inside| GraphNode {
                    name: format!("{}:{}", node.name, inside.name),
                    ..inside.clone()
                });
                graph.nodes.extend(renamed);
                replaced.insert(&node.name, within);
            }
        }
        if graph.nodes.len() > MAX_NODES {
            return None;
        }
    }
    if replaced.is_empty() {
        return None;
    }
    for edge in &outer.edges {
        let sources = ends(&replaced, &edge.source, AgentGraph::END, |inside| {
            (&inside.target, &inside.source)
        });
        let targets = ends(&replaced, &edge.target, AgentGraph::START, |inside| {
            (&inside.source, &inside.target)
        });
        for source in &sources {
            graph.edges.extend(targets.iter().map(|target| GraphEdge {
                source: source.clone(),
                target: target.clone(),
                conditional: edge.conditional,
            }));
        }
    }
    for (node, within) in replaced {
        let inside = within
            .edges
            .iter()
            .filter(|edge| edge.source != AgentGraph::START && edge.target != AgentGraph::END);
        graph.edges.extend(inside.map(|edge| GraphEdge {
            source: format!("{node}:{}", edge.source),
            target: format!("{node}:{}", edge.target),
            conditional: edge.conditional,
        }));
    }
    Some(graph)
}

/// Returns the nodes at which an edge ends: the node itself, or if it is replaced, the nodes of its
/// graph that are connected with `border`. `split` returns the end at the border and the other one.
fn ends(
    replaced: &HashMap<&str, AgentGraph>,
    node: &str,
    border: &str,
    split: impl Fn(&GraphEdge) -> (&String, &String),
) -> Vec<String> {
    let Some(within) = replaced.get(node) else {
        return vec![node.to_owned()];
    };
    let mut names = Vec::new();
    for edge in &within.edges {
        let (at, other) = split(edge);
        let name = format!("{node}:{other}");
        if at == border && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
#[path = "inner_graphs_tests.rs"]
mod tests;
