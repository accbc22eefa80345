//! Collects findings in the order in which they are made.

use super::code::FindingCode;
use super::report::{Finding, Validation};
use super::severity::Severity;

/// Maximum findings of each severity; the last one states that there are more.
pub const MAX_FINDINGS: usize = 1_000;

/// Findings of a validation under way.
#[derive(Debug, Clone, Default)]
pub struct Collector {
    errors: Vec<Finding>,
    warnings: Vec<Finding>,
}

impl Collector {
    /// Adds a finding with the usual severity of its code.
    pub fn add(&mut self, finding: Finding) {
        self.add_as(finding.code.severity(), finding);
    }

    /// Adds a finding with this severity.
    pub fn add_as(&mut self, severity: Severity, finding: Finding) {
        let list = match severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
        };
        if list.len() + 1 < MAX_FINDINGS {
            list.push(finding.bounded());
        } else if list.len() + 1 == MAX_FINDINGS {
            let message = format!("more problems follow; the first {} are listed", list.len());
            list.push(Finding::new(finding.code, message));
        }
    }

    /// Returns `true` if there are errors.
    pub fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// Returns `true` if a finding has this code.
    pub fn contains(&self, code: FindingCode) -> bool {
        self.errors
            .iter()
            .chain(&self.warnings)
            .any(|finding| finding.code == code)
    }

    /// Returns the result, with the line of each finding where `line` finds one for its path.
    pub fn finish(self, line: impl Fn(&str) -> Option<u64>) -> Validation {
        let locate = |mut findings: Vec<Finding>| {
            for finding in &mut findings {
                if finding.line.is_none() {
                    finding.line = finding.path.as_deref().and_then(&line);
                }
            }
            findings
        };
        Validation {
            valid: self.errors.is_empty(),
            errors: locate(self.errors),
            warnings: locate(self.warnings),
        }
    }
}
