//! Checks that a run is accepted once, ends once and keeps its final status, and that its end is
//! not reported early.

use std::collections::BTreeMap;

use super::finding::{Finding, Numbered};
use super::line::Operation;

/// Known state of a run at some line.
#[derive(Debug, Default)]
struct Known {
    accepted: bool,
    /// Line that reported its end.
    ended_at: Option<usize>,
    /// Status when it was last read.
    status: Option<(usize, String)>,
}

pub(super) fn analyze(history: &[Numbered], findings: &mut Vec<Finding>) {
    let mut runs: BTreeMap<&str, Known> = BTreeMap::new();
    let mut follows: BTreeMap<&str, &str> = BTreeMap::new();
    for (line, operation) in history {
        match operation {
            Operation::Accepted { run, .. } => {
                let known = runs.entry(run).or_default();
                if std::mem::replace(&mut known.accepted, true) {
                    findings.push(Finding::at(*line, format!("run {run} is accepted twice")));
                }
            }
            Operation::Opened { viewer, run, .. } => drop(follows.insert(viewer, run)),
            Operation::Ended { viewer } => {
                if let Some(run) = follows.get(viewer.as_str()) {
                    runs.entry(run).or_default().ended_at.get_or_insert(*line);
                }
            }
            Operation::ReadRun { run, status } => {
                let known = runs.entry(run).or_default();
                if let Some((_, before)) = known
                    .status
                    .as_ref()
                    .filter(|(_, before)| is_terminal(before) && before != status)
                {
                    findings.push(Finding::at(
                        *line,
                        format!("run {run} ended in {before} and is {status} now"),
                    ));
                }
                if known.ended_at.is_some() && !is_terminal(status) {
                    findings.push(Finding::at(
                        *line,
                        format!("run {run} is {status} after a viewer received its end"),
                    ));
                }
                known.status = Some((*line, status.clone()));
            }
            _ => {}
        }
    }
    for (run, known) in runs {
        if let Some((line, status)) = known
            .status
            .filter(|(_, status)| known.accepted && !is_terminal(status))
        {
            findings.push(Finding::at(
                line,
                format!("run {run} was accepted, and is {status} when it is last read"),
            ));
        }
    }
}

/// Reports whether this status means that the run has ended; a missing run was rolled back or
/// deleted.
pub(super) fn is_terminal(status: &str) -> bool {
    !matches!(status, "pending" | "running")
}
