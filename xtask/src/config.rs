//! `cargo xtask config`: checks the example configuration with the real binary.

use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::workspace::{self, Workspace};

/// Runs `deerflow config check` on `config.example.yaml`. Uses the binary that the workspace tests
/// use, to avoid a second build.
pub(crate) fn run(workspace: &Workspace) -> Result<ExitCode> {
    let built = workspace::run(Command::new("cargo").current_dir(workspace.root()).args([
        "build",
        "--quiet",
        "--workspace",
        "--bin",
        "deerflow",
    ]))?;
    if built != ExitCode::SUCCESS {
        return Ok(built);
    }
    workspace::run(
        Command::new(workspace.target_directory().join("debug/deerflow"))
            .current_dir(workspace.root())
            .args(["config", "check", "--config", "config.example.yaml"]),
    )
}
