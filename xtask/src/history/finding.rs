//! Findings of the checks, and the operations that the checks read.

use super::line::Operation;

/// Violation, and the line that shows it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) line: usize,
    pub(super) violation: String,
}

impl Finding {
    pub(super) fn at(line: usize, violation: impl Into<String>) -> Self {
        Self {
            line,
            violation: violation.into(),
        }
    }
}

/// Operation and its line number.
pub(super) type Numbered = (usize, Operation);
