//! Finding of one check.

use std::fmt;

/// Severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// No problem.
    Ok,
    /// A start would succeed, but something may not work.
    Warn,
    /// A start would fail, or an enabled channel could not work.
    Fail,
}

/// Result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Subject of the check.
    pub subject: &'static str,
    /// Severity.
    pub verdict: Verdict,
    /// Result in words.
    pub detail: String,
    /// Instruction that fixes the problem; empty if there is none.
    pub fix: String,
}

impl Finding {
    pub(super) fn ok(subject: &'static str, detail: impl Into<String>) -> Self {
        Self {
            subject,
            verdict: Verdict::Ok,
            detail: detail.into(),
            fix: String::new(),
        }
    }

    pub(super) fn warn(
        subject: &'static str,
        detail: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            subject,
            verdict: Verdict::Warn,
            detail: detail.into(),
            fix: fix.into(),
        }
    }

    pub(super) fn fail(
        subject: &'static str,
        detail: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            verdict: Verdict::Fail,
            ..Self::warn(subject, detail, fix)
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.verdict {
            Verdict::Ok => "ok  ",
            Verdict::Warn => "warn",
            Verdict::Fail => "FAIL",
        };
        write!(f, "{word}  {}: {}", self.subject, self.detail)?;
        if !self.fix.is_empty() {
            write!(f, "\n      fix: {}", self.fix)?;
        }
        Ok(())
    }
}
