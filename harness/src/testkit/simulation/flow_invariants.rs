//! Invariants of runs of flows: turns were executed as their effect allows, and each whole run has
//! the same end.

use std::collections::{BTreeMap, BTreeSet};

use super::flow::{TURNS, has_flow, result_of};
use super::world::{FlowTurn, Observations, RequestedRun};
use crate::ids::{RunId, ThreadId};
use crate::messages::Message;
use crate::runtime::runs::{RunRecord, RunStatus};

/// Error of a run whose unsafe turn an earlier process may have begun.
const IN_DOUBT: &str = "turn_outcome_unknown";

/// Returns the violated invariants.
pub(super) fn violations(
    observations: &Observations,
    runs: &BTreeMap<RunId, RunRecord>,
    history: &BTreeMap<ThreadId, Vec<Message>>,
) -> Vec<String> {
    let mut violations = turn_violations(&observations.turns);
    for requested in observations.requested.values() {
        let run = runs.get(&requested.run_id);
        if let Some(run) = run.filter(|_| has_flow(&requested.thread_id)) {
            let messages = &history[&requested.thread_id];
            violations.extend(end_violation(requested, run, messages, &observations.turns));
        }
    }
    violations
}

fn turn_violations(turns: &[FlowTurn]) -> Vec<String> {
    let mut executions: BTreeMap<(&str, &str, u64), Vec<&FlowTurn>> = BTreeMap::new();
    for turn in turns {
        let visit = (turn.run.as_str(), turn.node.as_str(), turn.visit);
        executions.entry(visit).or_default().push(turn);
    }
    let mut violations = Vec::new();
    for (visit, turns) in executions {
        let ids: BTreeSet<&str> = turns.iter().map(|turn| &*turn.invocation).collect();
        if ids.len() > 1 {
            violations.push(format!("turn {visit:?} has the invocations {ids:?}"));
        }
        if turns[0].is_unsafe && turns.len() > 1 {
            let times = turns.len();
            violations.push(format!("unsafe turn {visit:?} was begun {times} times"));
        }
    }
    violations
}

fn end_violation(
    requested: &RequestedRun,
    run: &RunRecord,
    messages: &[Message],
    turns: &[FlowTurn],
) -> Option<String> {
    let label = requested.run_id.as_str();
    match run.status {
        RunStatus::Success => {
            let marked = format!("{label}|");
            let begin = messages
                .iter()
                .position(|message| message.content.text().starts_with(&marked))?;
            let answers: Vec<String> = messages[begin + 1..]
                .iter()
                .take_while(|message| !message.is_human())
                .map(|message| message.content.text())
                .collect();
            if answers != [result_of(label)] {
                return Some(format!("{label} succeeded with {answers:?}"));
            }
            let executed = |(node, visit): &(&str, u64)| {
                turns
                    .iter()
                    .any(|turn| turn.run == label && turn.node == *node && turn.visit == *visit)
            };
            let missing = TURNS.iter().find(|visit| !executed(visit))?;
            Some(format!("{label} succeeded without {missing:?}"))
        }
        // The kernel ends runs whose processes die too often.
        RunStatus::Error if run.stop_reason().is_none() && run.error_name() != IN_DOUBT => {
            Some(format!("{label} failed with {:?}", run.error))
        }
        _ => None,
    }
}
