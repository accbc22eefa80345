//! A run is accepted once, ends once, and stays as it ended; nobody is told of its end before that is so.

use std::collections::BTreeMap;

use super::line::Operation;
use super::{Broken, Numbered};

/// What is known of a run at some line.
#[derive(Debug, Default)]
struct Known {
    accepted: bool,
    /// The line that told of its end.
    told: Option<usize>,
    /// How it stood when it was last read.
    status: Option<(usize, String)>,
}

pub(super) fn judge(history: &[Numbered], broken: &mut Vec<Broken>) {
    let mut runs: BTreeMap<&str, Known> = BTreeMap::new();
    let mut follows: BTreeMap<&str, &str> = BTreeMap::new();
    for (line, operation) in history {
        match operation {
            Operation::Accepted { run, .. } => {
                let known = runs.entry(run).or_default();
                if std::mem::replace(&mut known.accepted, true) {
                    broken.push(Broken::at(*line, format!("run {run} is accepted twice")));
                }
            }
            Operation::Opened { viewer, run, .. } => drop(follows.insert(viewer, run)),
            Operation::Ended { viewer } => {
                if let Some(run) = follows.get(viewer.as_str()) {
                    runs.entry(run).or_default().told.get_or_insert(*line);
                }
            }
            Operation::ReadRun { run, status } => {
                let known = runs.entry(run).or_default();
                if let Some((_, before)) = known
                    .status
                    .as_ref()
                    .filter(|(_, before)| is_terminal(before) && before != status)
                {
                    broken.push(Broken::at(
                        *line,
                        format!("run {run} ended in {before} and is {status} now"),
                    ));
                }
                if known.told.is_some() && !is_terminal(status) {
                    broken.push(Broken::at(
                        *line,
                        format!("run {run} is {status} after a viewer was told of its end"),
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
            broken.push(Broken::at(
                line,
                format!("run {run} was accepted, and is {status} when it is last read"),
            ));
        }
    }
}

/// Whether a run that is read so is over; one that is gone was undone or deleted.
pub(super) fn is_terminal(status: &str) -> bool {
    !matches!(status, "pending" | "running")
}
