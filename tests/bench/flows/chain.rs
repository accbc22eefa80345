//! Flows of the benchmark.

use std::fmt::Write as _;

/// Number of nodes of a flow.
pub(super) const NODES: usize = 10;

/// Returns a flow of ten nodes in a row, each with an agent of this adapter kind.
pub(super) fn chain(kind: &str) -> String {
    let agents: Vec<String> = (0..NODES).map(|n| format!("a{n}")).collect();
    document(kind, &agents, NODES - 1)
}

/// Returns a flow of ten nodes of one agent in a ring, which runs up to the limit of supersteps.
pub(super) fn ring(kind: &str) -> String {
    document(kind, &vec!["a".to_owned(); NODES], NODES)
}

/// Builds a flow whose first `edges` nodes lead to their successors; the last one leads to the
/// first.
fn document(kind: &str, agents: &[String], edges: usize) -> String {
    let mut names = agents.to_vec();
    names.dedup();
    let mut text = "meta: {schemaVersion: '2.0', name: Bench}\nagents:\n  agentDefs:\n".to_owned();
    for name in names {
        _ = writeln!(text, "    - {{agentId: {name}, adapterKind: {kind}}}");
    }
    text.push_str("graph:\n  startNodeId: n0\n  nodes:\n");
    for (n, agent) in agents.iter().enumerate() {
        _ = writeln!(
            text,
            "    - {{nodeId: n{n}, nodeKind: agent.sub, agentId: {agent}}}"
        );
    }
    text.push_str("  edges:\n");
    for n in 0..edges {
        let target = (n + 1) % agents.len();
        _ = writeln!(text, "    - {{source: n{n}, target: n{target}}}");
    }
    text
}
