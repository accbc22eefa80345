//! Severity of findings.

/// Whether a finding prevents runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// A flow with this finding does not run.
    Error,
    /// The flow runs.
    Warning,
}
