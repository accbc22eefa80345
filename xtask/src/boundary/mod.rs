//! `cargo xtask boundary`: checks dependencies against `ARCHITECTURE.md`.

mod circles;
mod edges;
mod modules;
mod product;
mod rules;

use anyhow::Result;

use crate::report::Violation;
use crate::source::Crate;
use crate::workspace::Workspace;

/// Returns every dependency between crates, on a restricted library or between modules that
/// violates a rule.
pub(crate) fn check(workspace: &Workspace) -> Result<Vec<Violation>> {
    let crates = Crate::load_all(workspace)?;
    let mut violations = edges::check(workspace);
    violations.extend(modules::check(workspace, &crates)?);
    violations.extend(circles::check(workspace, &crates)?);
    violations.extend(product::check(&crates));
    Ok(violations)
}

/// Returns the table of edges between modules as the code has it.
pub(crate) fn print_edges(workspace: &Workspace) -> Result<String> {
    Ok(modules::print(&Crate::load_all(workspace)?))
}

/// Returns the list of circles as the code has it.
pub(crate) fn print_circles(workspace: &Workspace) -> Result<String> {
    circles::print(workspace, &Crate::load_all(workspace)?)
}
