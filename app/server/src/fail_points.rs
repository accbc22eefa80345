//! Reads from the environment at which fail point a test wants this process to abort.

use std::fs::File;

use anyhow::Context;
use harness::config_file::Environment;
use harness::runtime::fail_points::{self, Plan};

/// Arms the fail point in `DEERFLOW_DIES_AT`, given as a name and a number of passes
/// (`run.admitted:3`), and records passed fail points in the file `DEERFLOW_PASSES`.
///
/// # Errors
/// A variable is invalid.
pub fn arm(environment: &Environment) -> anyhow::Result<()> {
    let dies_at = environment.filled("DEERFLOW_DIES_AT").map(|value| {
        let (name, times) = value
            .split_once(':')
            .context("DEERFLOW_DIES_AT is not of the form POINT:PASSES")?;
        anyhow::Ok((name.to_owned(), times.parse().context("DEERFLOW_DIES_AT")?))
    });
    let passed = environment
        .filled("DEERFLOW_PASSES")
        .map(|path| File::create(path).context("DEERFLOW_PASSES"));
    fail_points::arm(Plan {
        dies_at: dies_at.transpose()?,
        passed: passed.transpose()?,
    });
    Ok(())
}
