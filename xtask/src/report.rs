//! Violations and their output.

use std::fmt;
use std::io::{self, Write as _};
use std::process::ExitCode;

/// Violation of a rule, with its location and a fix.
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

    /// Creates a violation at a line of a file, counted from one.
    pub(crate) fn at(file: impl fmt::Display, line: usize, problem: impl Into<String>) -> Self {
        Self::new(format!("{file}:{line}"), problem)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.place, self.problem)
    }
}

/// Prints a table to standard output.
pub(crate) fn print_table(table: &str) -> anyhow::Result<ExitCode> {
    io::stdout().write_all(table.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Prints all violations and their number; fails if there is one.
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
