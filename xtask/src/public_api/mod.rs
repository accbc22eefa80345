//! `cargo xtask public-api`: compares the public API of each published crate with its snapshot.

use std::fs;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use cargo_metadata::camino::Utf8PathBuf;

use crate::report::{self, Violation};
use crate::workspace::{self, Workspace};

/// Folder of the snapshots.
const FOLDER: &str = "docs/public-api";

/// Version of cargo-public-api that reads the JSON of the current toolchain. Each version reads one
/// format: a new toolchain may need a new version, here and in `.ci/run`.
const TOOL_VERSION: &str = "0.52.0";

/// Compares each crate with its snapshot, or writes the snapshots.
pub(crate) fn run(workspace: &Workspace, write: bool) -> Result<ExitCode> {
    let crates = workspace.published();
    document(workspace, &crates)?;
    let mut violations = Vec::new();
    for name in crates {
        let found = items(workspace, name)?;
        let snapshot = Utf8PathBuf::from(FOLDER).join(format!("{name}.txt"));
        let path = workspace.root().join(&snapshot);
        if write {
            fs::write(&path, found).with_context(|| format!("writing {path}"))?;
        } else {
            let stored = fs::read_to_string(&path).unwrap_or_default();
            violations.extend(compare(&stored, &found, snapshot.as_str()));
        }
    }
    Ok(report::print("public-api", &violations))
}

/// Writes the documentation of the crates as JSON into the target directory.
fn document(workspace: &Workspace, crates: &[&str]) -> Result<()> {
    let rustdoc = workspace.root().join("xtask/src/public_api/rustdoc.sh");
    let packages = crates.iter().flat_map(|name| ["-p", name]);
    let ended = workspace::run(
        Command::new("cargo")
            .current_dir(workspace.root())
            .args(["doc", "--quiet", "--no-deps", "--all-features", "--lib"])
            .args(packages)
            .env("RUSTDOC", rustdoc)
            .env(
                "RUSTDOCFLAGS",
                "-Z unstable-options --output-format json --cap-lints allow",
            ),
    )?;
    ensure!(
        ended == ExitCode::SUCCESS,
        "the documentation cannot be built"
    );
    Ok(())
}

/// Returns the public items of a crate, one per line, without derived and blanket implementations.
fn items(workspace: &Workspace, name: &str) -> Result<String> {
    let file = format!("doc/{}.json", name.replace('-', "_"));
    let output = Command::new("cargo")
        .current_dir(workspace.root())
        .args(["public-api", "-sss", "--color", "never", "--rustdoc-json"])
        .arg(workspace.target_directory().join(file))
        .output()
        .context("starting cargo public-api")?;
    ensure!(
        output.status.success(),
        "cargo public-api failed; install it with `cargo install cargo-public-api --locked \
         --version {TOOL_VERSION}`:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).context("reading the public API")
}

/// Returns one violation per line that only one of the texts contains.
fn compare(stored: &str, found: &str, snapshot: &str) -> Vec<Violation> {
    let hint = "run `cargo xtask public-api --write`, review the difference and commit it";
    let missing = |lines: &str, of: &str, kind: &str| -> Vec<Violation> {
        lines
            .lines()
            .filter(|line| !of.lines().any(|other| other == *line))
            .map(|line| Violation::new(snapshot, format!("{kind} `{line}`: {hint}")))
            .collect()
    };
    let mut violations = missing(stored, found, "removed or changed");
    violations.extend(missing(found, stored, "added or changed"));
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparison_names_added_and_removed_items() {
        let found = compare("pub fn a()\npub fn b()\n", "pub fn b()\npub fn c()\n", "x");
        let texts: Vec<String> = found.iter().map(Violation::to_string).collect();
        assert_eq!(texts.len(), 2);
        assert!(texts[0].starts_with("x: removed or changed `pub fn a()`"));
        assert!(texts[1].starts_with("x: added or changed `pub fn c()`"));
        assert!(compare("pub fn a()\n", "pub fn a()\n", "x").is_empty());
    }
}
