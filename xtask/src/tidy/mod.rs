//! `cargo xtask tidy`: checks of source files that rustfmt and clippy do not cover.

mod code;
mod household;
mod language;
mod length;
mod text;
mod types;

use anyhow::Result;

use crate::report::Violation;
use crate::source::Crate;
use crate::workspace::Workspace;

/// Folders whose `.rs` files are checked.
const FOLDERS: [&str; 4] = ["harness", "app", "xtask", "tests"];

/// Returns all violations, in order of files.
pub(crate) fn check(workspace: &Workspace) -> Result<Vec<Violation>> {
    let mut oversize = length::Oversize::load(workspace)?;
    let mut violations = Vec::new();
    let mut openings = language::Openings::default();
    for folder in FOLDERS {
        for file in workspace.rust_files(folder)? {
            text::check(&file, &mut violations);
            code::check(&file, &mut violations);
            language::check(&file, &mut openings, &mut violations);
            violations.extend(oversize.check(&file));
        }
    }
    violations.extend(openings.violation());
    violations.extend(oversize.missing_files());
    violations.extend(types::check(workspace, &Crate::load_all(workspace)?)?);
    Ok(violations)
}
