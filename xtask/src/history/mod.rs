//! `cargo xtask check-history FILE...`: checks recorded client observations of a cluster for
//! consistency.
//!
//! `docs/histories.md` defines the format. Only externally visible behaviour is checked, so a
//! history may come from any client and any server that implements the wire protocol.

mod finding;
mod line;
mod runs;
mod streams;
mod threads;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use self::finding::{Finding, Numbered};
use self::line::Line;
use crate::report::Violation;

/// Returns all violations in the files, in order.
pub(crate) fn check(files: &[PathBuf]) -> Result<Vec<Violation>> {
    let mut violations = Vec::new();
    for file in files {
        let text =
            fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
        violations.extend(
            analyze(&text)
                .into_iter()
                .map(|Finding { line, violation }| Violation::at(file.display(), line, violation)),
        );
    }
    Ok(violations)
}

fn analyze(text: &str) -> Vec<Finding> {
    let (mut history, mut findings): (Vec<Numbered>, _) = (Vec::new(), Vec::new());
    let mut last = 0;
    for (number, line) in (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty())
    {
        match serde_json::from_str::<Line>(line) {
            Ok(Line { at, .. }) if at < last => findings.push(Finding::at(
                number,
                format!("time goes back from {last} to {at}"),
            )),
            Ok(Line { at, operation }) => {
                last = at;
                history.push((number, operation));
            }
            Err(error) => findings.push(Finding::at(
                number,
                format!("not a valid line of a history: {error}"),
            )),
        }
    }
    runs::analyze(&history, &mut findings);
    streams::analyze(&history, &mut findings);
    threads::analyze(&history, &mut findings);
    findings.sort_by_key(|finding| finding.line);
    findings
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
