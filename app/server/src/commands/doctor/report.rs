//! One thing the doctor looked at.

use std::fmt;

/// How a start would take it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Fine.
    Ok,
    /// It would start, and something may not work.
    Warn,
    /// It would not start.
    Fail,
}

/// One thing, what was found, and how to mend it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The thing.
    pub subject: &'static str,
    /// How a start would take it.
    pub verdict: Verdict,
    /// What was found.
    pub found: String,
    /// How to mend it; empty when it is fine.
    pub mend: String,
}

impl Finding {
    pub(super) fn ok(subject: &'static str, found: impl Into<String>) -> Self {
        Self {
            subject,
            verdict: Verdict::Ok,
            found: found.into(),
            mend: String::new(),
        }
    }

    pub(super) fn warn(
        subject: &'static str,
        found: impl Into<String>,
        mend: impl Into<String>,
    ) -> Self {
        Self {
            subject,
            verdict: Verdict::Warn,
            found: found.into(),
            mend: mend.into(),
        }
    }

    pub(super) fn fail(
        subject: &'static str,
        found: impl Into<String>,
        mend: impl Into<String>,
    ) -> Self {
        Self {
            verdict: Verdict::Fail,
            ..Self::warn(subject, found, mend)
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
        write!(f, "{word}  {}: {}", self.subject, self.found)?;
        if !self.mend.is_empty() {
            write!(f, "\n      mend: {}", self.mend)?;
        }
        Ok(())
    }
}
