//! Findings of the checks, and the operations that the checks read.

use super::line::Operation;

/// Violation, and the line that shows it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) line: usize,
    pub(super) promise: String,
}

impl Finding {
    pub(super) fn at(line: usize, promise: impl Into<String>) -> Self {
        Self {
            line,
            promise: promise.into(),
        }
    }
}

/// Operation and its line number.
pub(super) type Numbered = (usize, Operation);
