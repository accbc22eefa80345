//! What a check found, and how it is told.

use std::fmt;
use std::process::ExitCode;

/// One broken rule, where it is broken and what to do about it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    place: String,
    problem: String,
}

impl Violation {
    pub(crate) fn new(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            problem: problem.into(),
        }
    }

    /// A violation at a line (counted from one) of a file.
    pub(crate) fn at(file: impl fmt::Display, line: usize, problem: impl Into<String>) -> Self {
        Self::new(format!("{file}:{line}"), problem)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.place, self.problem)
    }
}

/// Prints every violation and a last line with their number; fails when there is one.
pub(crate) fn print(check: &str, violations: &[Violation]) -> ExitCode {
    for violation in violations {
        eprintln!("{violation}");
    }
    match violations.len() {
        0 => {
            eprintln!("{check}: ok");
            ExitCode::SUCCESS
        }
        1 => {
            eprintln!("{check}: 1 violation");
            ExitCode::FAILURE
        }
        many => {
            eprintln!("{check}: {many} violations");
            ExitCode::FAILURE
        }
    }
}
