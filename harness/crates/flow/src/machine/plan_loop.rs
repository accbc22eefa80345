//! Decisions of `control.plan-loop` and `control.loop`.

use serde_json::Value;

use super::activation::{Activation, Completion, LoopChange};
use super::agent_output::{evaluation, is_evaluation};
use super::data::{DataScope, RunData};
use super::output::{LoopStage, LoopState};
use super::routing;
use crate::adapter::FlowError;
use crate::compiled::{CompiledFlow, LoopNode, NodeIndex, PlanLoopNode};
use crate::schema::DataType;

/// Next action of a plan loop.
enum PlanStep<'a> {
    Plan,
    Execute {
        round: u64,
        score: Option<&'a Value>,
    },
    Evaluate {
        round: u64,
    },
    Done {
        action: &'static str,
        score: Option<&'a Value>,
    },
}

/// Returns the result of a visit of a plan loop. `sequence` is the number of the last commit.
///
/// # Errors
/// `no_route`.
pub(super) fn visit_plan_loop(
    flow: &CompiledFlow,
    data: &RunData,
    visit: &Activation,
    node: &PlanLoopNode,
    sequence: u64,
) -> Result<Completion, FlowError> {
    let state = data.loop_state(visit.node);
    let (stage, round, score, action) = match plan_step(flow, data, visit, node, state) {
        PlanStep::Plan => (Some(LoopStage::Plan), 0, None, "plan"),
        PlanStep::Execute { round, score } => (Some(LoopStage::Execute), round, score, "execute"),
        PlanStep::Evaluate { round } => (Some(LoopStage::Evaluate), round, None, "evaluate"),
        PlanStep::Done { action, score } => (None, 0, score, action),
    };
    let handle = if stage.is_some() { action } else { "done" };
    let last = visit.carried.last().copied();
    // The visit of the loop itself is the next commit; what the round makes comes after it.
    let since = match (stage, state) {
        (Some(LoopStage::Evaluate), Some(state)) => state.since,
        _ => sequence + 1,
    };
    let former = || data.port(visit.node, "score").filter(|_| state.is_some());
    let score = score.or_else(former).cloned();
    Ok(Completion {
        route: routing::handle(flow, data, visit.node, last, handle, None)?,
        ports: score
            .map(|score| ("score".to_owned(), score))
            .into_iter()
            .collect(),
        action: Some(action.to_owned()),
        loop_change: stage.map_or(LoopChange::Clear, |stage| {
            LoopChange::Set(LoopState {
                stage,
                round,
                since,
            })
        }),
        ..Completion::default()
    })
}

fn plan_step<'a>(
    flow: &CompiledFlow,
    data: &'a RunData,
    visit: &Activation,
    node: &PlanLoopNode,
    state: Option<LoopState>,
) -> PlanStep<'a> {
    let Some(state) = state else {
        return if node.has_plan {
            PlanStep::Plan
        } else {
            PlanStep::Execute {
                round: 1,
                score: None,
            }
        };
    };
    if state.stage == LoopStage::Plan {
        return PlanStep::Execute {
            round: 1,
            score: None,
        };
    }
    let found = newest_evaluation(flow, data, visit, node, state.since);
    if state.stage == LoopStage::Execute && found.is_none() && node.has_evaluate {
        return PlanStep::Evaluate { round: state.round };
    }
    let is_complete = found
        .and_then(evaluation)
        .is_some_and(|(score, can_complete)| can_complete && score >= node.completion_threshold);
    if is_complete {
        PlanStep::Done {
            action: "done",
            score: found,
        }
    } else if state.round >= node.max_iterations {
        PlanStep::Done {
            action: "done_max_iterations",
            score: found,
        }
    } else {
        PlanStep::Execute {
            round: state.round + 1,
            score: found,
        }
    }
}

/// Returns the evaluation of the round: of a data edge into a score port, else of the node that
/// activated the loop, else of the newest evaluating node that leads back to the loop.
fn newest_evaluation<'a>(
    flow: &CompiledFlow,
    data: &'a RunData,
    visit: &Activation,
    node: &PlanLoopNode,
    since: u64,
) -> Option<&'a Value> {
    let sequence = |node: NodeIndex| data.output(node).map_or(0, |output| output.sequence);
    let structured = |node: NodeIndex| {
        let output = data.output(node).filter(|output| is_evaluation(output))?;
        (output.sequence > since).then_some(output.structured.as_ref()?)
    };
    let usable = |value: &&Value| evaluation(value).is_some();
    let inputs = &flow.nodes[visit.node].inputs;
    let is_score = |port: &str| {
        inputs
            .iter()
            .any(|input| input.port_id == port && input.data_type == DataType::Score)
    };
    let by_edge = || {
        flow.data[visit.node]
            .iter()
            .filter(|edge| is_score(&edge.target_port) && sequence(edge.source) > since)
            .filter_map(|edge| data.port(edge.source, &edge.source_port))
            .find(usable)
    };
    let by_source = || {
        visit
            .sources
            .iter()
            .rev()
            .filter_map(|node| structured(*node))
            .find(usable)
    };
    let by_loop = || {
        let mut evaluators: Vec<NodeIndex> = node.evaluators.clone();
        evaluators.sort_by_key(|node| std::cmp::Reverse(sequence(*node)));
        evaluators.into_iter().filter_map(structured).find(usable)
    };
    by_edge().or_else(by_source).or_else(by_loop)
}

/// Returns the result of a visit of a counted loop: another round, or `done`.
///
/// # Errors
/// `no_route`.
pub(super) fn visit_counted_loop(
    flow: &CompiledFlow,
    data: &RunData,
    visit: &Activation,
    node: &LoopNode,
    sequence: u64,
) -> Result<Completion, FlowError> {
    let last = visit.carried.last().copied();
    let scope = DataScope { flow, data, last };
    let round = data.loop_state(visit.node).map_or(0, |state| state.round);
    let goes_on = round < node.max_iterations
        && node
            .condition
            .as_ref()
            .is_none_or(|condition| condition.is_true(&scope));
    let (handle, loop_change) = if goes_on {
        let (stage, since) = (LoopStage::Execute, sequence + 1);
        (
            "loop",
            LoopChange::Set(LoopState {
                stage,
                round: round + 1,
                since,
            }),
        )
    } else {
        ("done", LoopChange::Clear)
    };
    Ok(Completion {
        route: routing::handle(flow, data, visit.node, last, handle, None)?,
        action: Some(handle.to_owned()),
        loop_change,
        ..Completion::default()
    })
}
