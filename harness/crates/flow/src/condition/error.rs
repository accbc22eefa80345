//! Limits of conditions, and the error of a text that is none.

/// Maximum characters of a condition.
pub const MAX_CHARS: usize = 2_000;
/// Maximum depth of parentheses, negations and calls.
pub const MAX_DEPTH: usize = 32;

/// Reason why a text is not a condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset}: expected {expected}")]
pub struct ConditionError {
    /// Byte offset of the problem, from 0.
    pub offset: usize,
    /// Value that would be correct.
    pub expected: String,
}
