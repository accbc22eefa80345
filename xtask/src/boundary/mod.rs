//! `cargo xtask boundary`: dependencies point the way `ARCHITECTURE.md` says.

mod edges;
mod layers;
mod rules;
mod scan;

use anyhow::Result;

use crate::report::Violation;
use crate::workspace::Workspace;

/// Every dependency between crates, on a restricted library or between layers of harness that breaks a rule.
pub(crate) fn check(workspace: &Workspace) -> Result<Vec<Violation>> {
    let mut violations = edges::check(workspace);
    violations.extend(layers::check(workspace)?);
    Ok(violations)
}
