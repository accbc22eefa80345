//! Findings as lines for people and programs.

use std::fmt::Display;
use std::io::{self, Write};

use deerflow_flow::finding::{Finding, Validation};

use crate::commands::chat::plain;

/// Returns `path:line: severity code: message (pointer)`.
pub(crate) fn finding_line(path: &dyn Display, severity: &str, finding: &Finding) -> String {
    let line = finding.line.map(|line| format!(":{line}"));
    let pointer = finding
        .path
        .as_deref()
        .filter(|pointer| !pointer.is_empty());
    let pointer = pointer.map(|pointer| format!(" ({pointer})"));
    one_line(&format!(
        "{path}{}: {severity} {}: {}{}",
        line.unwrap_or_default(),
        finding.code,
        finding.message,
        pointer.unwrap_or_default()
    ))
}

/// Writes one line per finding, errors first.
pub(super) fn write_findings(
    path: &dyn Display,
    validation: &Validation,
    out: &mut dyn Write,
) -> io::Result<()> {
    let errors = validation.errors.iter().map(|finding| ("error", finding));
    let warnings = validation.warnings.iter();
    for (severity, finding) in errors.chain(warnings.map(|finding| ("warning", finding))) {
        writeln!(out, "{}", finding_line(path, severity, finding))?;
    }
    Ok(())
}

/// Replaces line ends and removes characters that steer a terminal.
pub(super) fn one_line(text: &str) -> String {
    plain(text).replace(['\n', '\t'], " ")
}
