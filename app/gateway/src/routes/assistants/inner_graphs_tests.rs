//! Tests of nested graphs.

use super::*;

/// Agent with a chain of nodes, of which the first may run another agent.
#[derive(Debug)]
struct Chain(Option<&'static str>);

impl Agent for Chain {
    fn stream(
        &self,
        _: harness::runtime::agent::AgentInput,
        _: harness::runtime::agent::RunContext,
        _: harness::runtime::agent::EventReceiver,
    ) -> harness::runtime::agent::AgentStream {
        unreachable!("the graph is read only")
    }

    fn nodes(&self) -> Vec<String> {
        vec!["first".to_owned(), "last".to_owned()]
    }

    fn graph(&self) -> AgentGraph {
        let mut graph = AgentGraph::chain(self.nodes());
        graph.nodes[0].inner = self.0.map(str::to_owned);
        graph
    }
}

fn graphs(inner_of_inner: Option<&'static str>) -> (AgentGraph, InnerGraphs) {
    let agent: Arc<dyn Agent> = Arc::new(Chain(inner_of_inner));
    let agents = HashMap::from([("inner".to_owned(), agent)]);
    (Chain(Some("inner")).graph(), InnerGraphs(agents))
}

fn edges(graph: &AgentGraph) -> Vec<String> {
    let edge = |edge: &GraphEdge| format!("{}>{}", edge.source, edge.target);
    graph.edges.iter().map(edge).collect()
}

#[test]
fn node_is_replaced_by_the_graph_that_it_runs() {
    let (outer, inner) = graphs(None);
    let graph = expanded(outer, &inner, 1);
    let names: Vec<&str> = graph.nodes.iter().map(|node| &*node.name).collect();
    assert_eq!(names, ["first:first", "first:last", "last"]);
    assert_eq!(
        edges(&graph),
        [
            "__start__>first:first",
            "first:last>last",
            "last>__end__",
            "first:first>first:last"
        ]
    );
}

#[test]
fn graph_that_contains_itself_is_expanded_to_the_depth() {
    let (outer, inner) = graphs(Some("inner"));
    let graph = expanded(outer.clone(), &inner, 3);
    assert_eq!(graph.nodes[0].name, "first:first:first:first");
    let mut namespaces = Vec::new();
    inner.walk(&outer, 2, &mut |path, name, _| {
        assert_eq!(name, "inner");
        namespaces.push(path.join("|"));
    });
    assert_eq!(namespaces, ["first", "first|first"]);
}
