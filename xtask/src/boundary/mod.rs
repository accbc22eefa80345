//! `cargo xtask boundary`: checks dependencies against `ARCHITECTURE.md`.

mod edges;
mod layers;
mod rules;
mod scan;

use anyhow::Result;

use crate::report::Violation;
use crate::workspace::Workspace;

/// Returns every dependency between crates, on a restricted library or between layers of harness
/// that violates a rule.
pub(crate) fn check(workspace: &Workspace) -> Result<Vec<Violation>> {
    let mut violations = edges::check(workspace);
    violations.extend(layers::check(workspace)?);
    Ok(violations)
}
