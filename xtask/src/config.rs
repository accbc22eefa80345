//! `cargo xtask config`: the example configuration, read by the binary that will read it.

use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::workspace::{self, Workspace};

/// Runs `deerflow config check` over `config.example.yaml`.
pub(crate) fn run(workspace: &Workspace) -> Result<ExitCode> {
    workspace::run(
        Command::new("cargo")
            .current_dir(workspace.root())
            .args([
                "run",
                "--quiet",
                "-p",
                "deerflow-server",
                "--bin",
                "deerflow",
                "--",
            ])
            .args(["config", "check", "--config", "config.example.yaml"]),
    )
}
