//! Edges that a node takes.

use super::activation::Route;
use super::data::{DataScope, RunData};
use crate::adapter::{ErrorCategory, FlowError};
use crate::compiled::{CompiledFlow, ControlEdge, NodeIndex};

fn is_open(edge: &ControlEdge, scope: &DataScope<'_>) -> bool {
    edge.condition
        .as_ref()
        .is_none_or(|condition| condition.is_true(scope))
}

fn no_route(flow: &CompiledFlow, node: NodeIndex, what: &str) -> FlowError {
    let id = flow.nodes[node].id.to_string();
    let message = format!("node {id:?} has no edge for {what}");
    FlowError::new("no_route", ErrorCategory::Engine, message).at_node(id)
}

/// Returns the edges of a router: the first whose condition is true, else the first without one.
///
/// # Errors
/// `no_route`, if there is no such edge.
pub(super) fn first_match(
    flow: &CompiledFlow,
    data: &RunData,
    node: NodeIndex,
    last: Option<NodeIndex>,
) -> Result<Route, FlowError> {
    let scope = DataScope { flow, data, last };
    let edges = &flow.control[node];
    let matches = |edge: &ControlEdge| {
        edge.condition
            .as_ref()
            .is_some_and(|condition| condition.is_true(&scope))
    };
    let chosen = edges
        .iter()
        .position(matches)
        .or_else(|| edges.iter().position(|edge| edge.condition.is_none()));
    chosen
        .map(|edge| Route::Edges(vec![edge]))
        .ok_or_else(|| no_route(flow, node, "these values"))
}

/// Returns the edges of a handle; without any, the edges without a handle. `fallback` is a handle
/// that counts as none.
///
/// # Errors
/// `no_route`, if there is no such edge.
pub(super) fn handle(
    flow: &CompiledFlow,
    data: &RunData,
    node: NodeIndex,
    last: Option<NodeIndex>,
    name: &str,
    fallback: Option<&str>,
) -> Result<Route, FlowError> {
    let scope = DataScope { flow, data, last };
    let edges = &flow.control[node];
    let positions = |wanted: &dyn Fn(Option<&str>) -> bool| -> Vec<usize> {
        (0..edges.len())
            .filter(|edge| wanted(edges[*edge].handle.as_deref()) && is_open(&edges[*edge], &scope))
            .collect()
    };
    let mut chosen = positions(&|handle| handle == Some(name));
    if chosen.is_empty() {
        chosen = positions(&|handle| handle.is_none() || handle == fallback);
    }
    if chosen.is_empty() {
        return Err(no_route(flow, node, &format!("{name:?}")));
    }
    Ok(Route::Edges(chosen))
}

/// Returns the control edges of a route. Conditions of `Route::All` are evaluated now.
pub(super) fn edges<'a>(
    flow: &'a CompiledFlow,
    data: &RunData,
    node: NodeIndex,
    last: Option<NodeIndex>,
    route: &Route,
) -> Vec<&'a ControlEdge> {
    let scope = DataScope { flow, data, last };
    let open =
        |edges: &'a [ControlEdge]| edges.iter().filter(|edge| is_open(edge, &scope)).collect();
    match route {
        Route::All => open(&flow.control[node]),
        Route::Error => open(&flow.error_edges[node]),
        Route::Edges(chosen) => chosen
            .iter()
            .filter_map(|edge| flow.control[node].get(*edge))
            .collect(),
    }
}
