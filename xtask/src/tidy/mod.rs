//! `cargo xtask tidy`: the shape of the source files that rustfmt and clippy do not look at.

mod code;
mod length;
mod text;

use anyhow::Result;

use crate::report::Violation;
use crate::workspace::Workspace;

/// The folders whose `.rs` files are ours to keep tidy.
const FOLDERS: [&str; 4] = ["harness", "app", "xtask", "tests"];

/// Everything untidy, in the order of the files.
pub(crate) fn check(workspace: &Workspace) -> Result<Vec<Violation>> {
    let mut oversize = length::Oversize::load(workspace)?;
    let mut violations = Vec::new();
    for folder in FOLDERS {
        for file in workspace.rust_files(folder)? {
            text::check(&file, &mut violations);
            code::check(&file, &mut violations);
            violations.extend(oversize.check(&file));
        }
    }
    violations.extend(oversize.leftovers());
    Ok(violations)
}
