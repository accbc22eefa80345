//! Graph of the loop, built from its nodes.

use super::nodes::{LoopNodes, LoopPosition, MODEL, TOOLS};
use crate::middlewares::Phase;
use crate::runtime::agent::{AgentGraph, GraphEdge, GraphNode};

/// Builds the graph of a loop with these tools. Jumps of hooks have no edges.
pub(super) fn graph_of(nodes: &LoopNodes, tools: Vec<String>) -> AgentGraph {
    let name = |position| nodes.name(position).to_owned();
    let mut edges = vec![GraphEdge::always(AgentGraph::START, name(nodes.entry()))];
    // Connects the hooks of a phase in order and returns the last one, if any.
    let mut connect_phase = |phase: Phase| {
        let mut last = None;
        for nth in 0.. {
            let next = nodes.hook_or(phase, nth, || LoopPosition::End);
            if next == LoopPosition::End {
                break;
            }
            if let Some(last) = last {
                edges.push(GraphEdge::always(name(last), name(next)));
            }
            last = Some(next);
        }
        last
    };
    let [before_agent, before_model, after_model, after_agent] = [
        Phase::BeforeAgent,
        Phase::BeforeModel,
        Phase::AfterModel,
        Phase::AfterAgent,
    ]
    .map(&mut connect_phase);
    edges.extend(before_agent.map(|last| GraphEdge::always(name(last), name(nodes.loop_entry()))));
    edges.extend(before_model.map(|last| GraphEdge::always(name(last), MODEL)));
    if after_model.is_some() {
        edges.push(GraphEdge::always(
            MODEL,
            name(nodes.hook_or(Phase::AfterModel, 0, || LoopPosition::Model)),
        ));
    }
    let deciding_node = after_model.map_or_else(|| MODEL.to_owned(), name);
    edges.push(GraphEdge::sometimes(
        deciding_node.as_str(),
        name(nodes.exit()),
    ));
    edges.push(GraphEdge::sometimes(deciding_node, TOOLS));
    edges.push(GraphEdge::always(TOOLS, name(nodes.loop_entry())));
    edges.extend(after_agent.map(|last| GraphEdge::always(name(last), AgentGraph::END)));
    let node = |name: String| GraphNode {
        tools: if name == TOOLS {
            tools.clone()
        } else {
            Vec::new()
        },
        ..GraphNode::new(name)
    };
    AgentGraph {
        nodes: nodes.names().into_iter().map(node).collect(),
        edges,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges_of(hooks: impl Fn(Phase) -> &'static [&'static str]) -> Vec<String> {
        let nodes = LoopNodes::with_hooks(|phase| {
            hooks(phase)
                .iter()
                .map(|name| ((*name).to_owned(), 0))
                .collect()
        });
        let graph = graph_of(&nodes, vec!["ls".to_owned()]);
        assert_eq!(
            graph
                .nodes
                .iter()
                .map(|node| node.name.clone())
                .collect::<Vec<_>>(),
            nodes.names()
        );
        let line = |edge: &GraphEdge| {
            format!(
                "{} {} {}",
                edge.source,
                if edge.conditional { "?" } else { ">" },
                edge.target
            )
        };
        let mut lines: Vec<_> = graph.edges.iter().map(line).collect();
        lines.sort();
        lines
    }

    #[test]
    fn graph_without_hooks_alternates_model_and_tools() {
        assert_eq!(
            edges_of(|_| &[]),
            [
                "__start__ > model",
                "model ? __end__",
                "model ? tools",
                "tools > model"
            ]
        );
    }

    #[test]
    fn graph_contains_hooks_in_execution_order() {
        let hooks = |phase| -> &'static [&'static str] {
            match phase {
                Phase::BeforeAgent => &["A"],
                Phase::BeforeModel => &["A", "B"],
                Phase::AfterModel => &["B", "A"],
                Phase::AfterAgent => &["C"],
            }
        };
        assert_eq!(
            edges_of(hooks),
            [
                "A.after_model ? C.after_agent",
                "A.after_model ? tools",
                "A.before_agent > A.before_model",
                "A.before_model > B.before_model",
                "B.after_model > A.after_model",
                "B.before_model > model",
                "C.after_agent > __end__",
                "__start__ > A.before_agent",
                "model > B.after_model",
                "tools > A.before_model",
            ]
        );
    }
}
