//! Severity of findings.

/// Severity: an error prevents runs, a warning does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// A flow with this finding does not run.
    Error,
    /// The flow runs.
    Warning,
}
