//! The loop as a drawing, from its nodes.

use super::nodes::{LoopNodes, MODEL, Place, TOOLS};
use crate::middlewares::Phase;
use crate::runtime::agent::{AgentGraph, GraphEdge, GraphNode};

/// The drawing of a loop whose tools are called `tools`. Hooks may also jump; those ways are not drawn.
pub(super) fn drawing(nodes: &LoopNodes, tools: Vec<String>) -> AgentGraph {
    let name = |place| nodes.name(place).to_owned();
    let mut edges = vec![GraphEdge::always(AgentGraph::START, name(nodes.entry()))];
    // Each hook leads to the next of its phase; gives back the last, if the phase has any.
    let mut along = |phase: Phase| {
        let mut last = None;
        for nth in 0.. {
            let next = nodes.hook_or(phase, nth, || Place::End);
            if next == Place::End {
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
    .map(&mut along);
    edges.extend(before_agent.map(|last| GraphEdge::always(name(last), name(nodes.loop_entry()))));
    edges.extend(before_model.map(|last| GraphEdge::always(name(last), MODEL)));
    if after_model.is_some() {
        edges.push(GraphEdge::always(
            MODEL,
            name(nodes.hook_or(Phase::AfterModel, 0, || Place::Model)),
        ));
    }
    let decides = after_model.map_or_else(|| MODEL.to_owned(), name);
    edges.push(GraphEdge::sometimes(decides.as_str(), name(nodes.exit())));
    edges.push(GraphEdge::sometimes(decides, TOOLS));
    edges.push(GraphEdge::always(TOOLS, name(nodes.loop_entry())));
    edges.extend(after_agent.map(|last| GraphEdge::always(name(last), AgentGraph::END)));
    let node = |name: String| GraphNode {
        tools: if name == TOOLS {
            tools.clone()
        } else {
            Vec::new()
        },
        name,
    };
    AgentGraph {
        nodes: nodes.names().into_iter().map(node).collect(),
        edges,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(hooks: impl Fn(Phase) -> &'static [&'static str]) -> Vec<String> {
        let nodes = LoopNodes::with_hooks(|phase| {
            hooks(phase)
                .iter()
                .map(|name| ((*name).to_owned(), 0))
                .collect()
        });
        let drawing = drawing(&nodes, vec!["ls".to_owned()]);
        assert_eq!(
            drawing
                .nodes
                .iter()
                .map(|node| node.name.clone())
                .collect::<Vec<_>>(),
            nodes.names()
        );
        let arrow = |edge: &GraphEdge| {
            format!(
                "{} {} {}",
                edge.source,
                if edge.conditional { "?" } else { ">" },
                edge.target
            )
        };
        let mut arrows: Vec<_> = drawing.edges.iter().map(arrow).collect();
        arrows.sort();
        arrows
    }

    #[test]
    fn a_bare_loop_goes_between_model_and_tools() {
        assert_eq!(
            drawn(|_| &[]),
            [
                "__start__ > model",
                "model ? __end__",
                "model ? tools",
                "tools > model"
            ]
        );
    }

    #[test]
    fn hooks_stand_where_they_run() {
        let hooks = |phase| -> &'static [&'static str] {
            match phase {
                Phase::BeforeAgent => &["A"],
                Phase::BeforeModel => &["A", "B"],
                Phase::AfterModel => &["B", "A"],
                Phase::AfterAgent => &["C"],
            }
        };
        assert_eq!(
            drawn(hooks),
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
