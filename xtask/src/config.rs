//! `cargo xtask config`: the example configuration, read by the binary that will read it.

use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::workspace::{self, Workspace};

/// Runs `deerflow config check` over `config.example.yaml`. The binary is the one that the tests of the workspace use,
/// so that nothing is built twice.
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
