//! Printed figures.

use std::io::Write as _;

use crate::arguments::Case;

/// Prints the heading of a case with the load of the machine.
pub(crate) fn begin(case: Case) -> anyhow::Result<()> {
    let name = format!("{case:?}").to_lowercase();
    line(&format!("\n{name}: load average {}", load()))
}

/// Prints a line.
pub(crate) fn line(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()?;
    Ok(())
}

/// Returns the load averages of 1, 5 and 15 minutes.
pub(crate) fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let averages: Vec<&str> = load.split(' ').take(3).collect();
    averages.join(" ")
}

/// Returns bytes as mebibytes.
pub(crate) fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / (1024.0 * 1024.0)
}
