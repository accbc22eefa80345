//! `cargo xtask check-history FILE...`: holds what clients saw of a cluster against what they were promised.
//!
//! `docs/histories.md` says what a history is. Only what can be seen from outside is checked, so a history may come from any
//! client and any server that speaks the wire.

mod line;
mod runs;
mod streams;
mod threads;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use self::line::{Line, Operation};
use crate::report::Violation;

/// Every broken promise in the files, in their order.
pub(crate) fn check(files: &[PathBuf]) -> Result<Vec<Violation>> {
    let mut violations = Vec::new();
    for file in files {
        let text =
            fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
        violations.extend(
            judge(&text)
                .into_iter()
                .map(|Broken { line, promise }| Violation::at(file.display(), line, promise)),
        );
    }
    Ok(violations)
}

/// A promise that was not kept, and the line that shows it.
#[derive(Debug, PartialEq, Eq)]
struct Broken {
    line: usize,
    promise: String,
}

impl Broken {
    fn at(line: usize, promise: impl Into<String>) -> Self {
        Self {
            line,
            promise: promise.into(),
        }
    }
}

/// An operation and the line it stands in.
type Numbered = (usize, Operation);

fn judge(text: &str) -> Vec<Broken> {
    let (mut history, mut broken): (Vec<Numbered>, _) = (Vec::new(), Vec::new());
    let mut last = 0;
    for (number, line) in (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty())
    {
        match serde_json::from_str::<Line>(line) {
            Ok(Line { at, .. }) if at < last => broken.push(Broken::at(
                number,
                format!("time goes back from {last} to {at}"),
            )),
            Ok(Line { at, operation }) => {
                last = at;
                history.push((number, operation));
            }
            Err(error) => broken.push(Broken::at(
                number,
                format!("is no line of a history: {error}"),
            )),
        }
    }
    runs::judge(&history, &mut broken);
    streams::judge(&history, &mut broken);
    threads::judge(&history, &mut broken);
    broken.sort_by_key(|broken| broken.line);
    broken
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
