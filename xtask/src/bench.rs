//! `cargo xtask bench`: runs the load generator of the tests package against a freshly built
//! gateway.

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::workspace::{self, Workspace};

/// Builds both binaries with `profile` and runs the load generator with `args`.
pub(crate) fn run(workspace: &Workspace, profile: &str, args: &[OsString]) -> Result<ExitCode> {
    // One build for each: together, the gateway would get the features that tests enable, and the
    // measured program would not be the shipped one. It differs from that only by its counters of
    // allocations.
    for (package, binary, features) in [
        ("deerflow-tests", "deerflow-bench", ""),
        ("deerflow-server", "deerflow", "count-allocations"),
    ] {
        let built = workspace::run(
            Command::new("cargo")
                .current_dir(workspace.root())
                .args(["build", "--profile", profile])
                .args(["-p", package, "--bin", binary])
                .args(["--features", features]),
        )?;
        if built != ExitCode::SUCCESS {
            return Ok(built);
        }
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
