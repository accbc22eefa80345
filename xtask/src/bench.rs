//! `cargo xtask bench`: runs the load generator of the tests package against a freshly built
//! gateway.

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::workspace::{self, Workspace};

/// Builds both binaries with `profile` and runs the load generator with `args`.
pub(crate) fn run(workspace: &Workspace, profile: &str, args: &[OsString]) -> Result<ExitCode> {
    let built = workspace::run(
        Command::new("cargo")
            .current_dir(workspace.root())
            .args(["build", "--profile", profile])
            .args(["-p", "deerflow-server", "--bin", "deerflow"])
            .args(["-p", "deerflow-tests", "--bin", "deerflow-bench"]),
    )?;
    if built != ExitCode::SUCCESS {
        return Ok(built);
    }
    let binaries = workspace.target_directory().join(folder_of(profile));
    workspace::run(
        Command::new(binaries.join("deerflow-bench"))
            .current_dir(workspace.root())
            .arg("--gateway")
            .arg(binaries.join("deerflow"))
            .args(args),
    )
}

/// Returns the folder of a cargo profile below the target directory.
fn folder_of(profile: &str) -> &str {
    match profile {
        "dev" | "test" => "debug",
        "bench" => "release",
        named => named,
    }
}
