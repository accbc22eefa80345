//! Reads from the environment where a test wants this process to die.

use std::fs::File;

use anyhow::Context;
use harness::config_file::Environment;
use harness::runtime::fail_points::{self, Plan};

/// Follows `DEERFLOW_DIES_AT`, a place and how often it is passed until then (`run.admitted:3`), and writes what is passed to
/// the file that `DEERFLOW_PASSES` names.
///
/// # Errors
/// When a variable cannot be followed.
pub fn arm(environment: &Environment) -> anyhow::Result<()> {
    let dies_at = environment.filled("DEERFLOW_DIES_AT").map(|wanted| {
        let (place, times) = wanted
            .split_once(':')
            .context("DEERFLOW_DIES_AT is not of the form place:times")?;
        anyhow::Ok((place.to_owned(), times.parse().context("DEERFLOW_DIES_AT")?))
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
