//! `deerflow db`: integrity check, vacuum, backup and restore of the database.

use std::io::Write;
use std::process::ExitCode;

use chrono::{DateTime, Utc};
use deerflow_stores::{Database, DatabaseConfig};
use serde_json::json;

use super::table::write_json;
use crate::cli::DbCommand;

/// Runs the command on the database `config` and writes its output to `out`. The exit code is a
/// failure if a check found problems.
pub async fn run(
    command: &DbCommand,
    config: &DatabaseConfig,
    now: DateTime<Utc>,
    out: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    match command {
        DbCommand::Check { json, .. } => return check(config, *json, out).await,
        DbCommand::Vacuum { .. } => {
            let vacuumed = Database::vacuum(config).await?;
            writeln!(
                out,
                "compacted the database from {} to {}",
                size(vacuumed.before),
                size(vacuumed.after)
            )?;
        }
        DbCommand::Backup { target, .. } => {
            let written = Database::back_up(config, target).await?;
            writeln!(
                out,
                "wrote {} ({}) and its SHA-256; files of threads, agents and skills are not part of it: see docs/operations.md",
                target.display(),
                size(written.bytes)
            )?;
        }
        DbCommand::Restore { backup, .. } => {
            let restored = Database::restore(config, backup, now).await?;
            for warning in &restored.warnings {
                writeln!(out, "warning: {warning}")?;
            }
            writeln!(
                out,
                "restored {} ({})",
                backup.display(),
                size(restored.bytes)
            )?;
            if let Some(former) = restored.former {
                writeln!(out, "the former database is now {}", former.display())?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn check(
    config: &DatabaseConfig,
    json: bool,
    out: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    let integrity = Database::check_integrity(config).await?;
    if json {
        let report = json!({
            "problems": integrity.problems,
            "bytes": integrity.bytes,
            "free_bytes": integrity.free_bytes,
        });
        write_json(&report, out)?;
    } else {
        for problem in &integrity.problems {
            writeln!(out, "{problem}")?;
        }
        let verdict = match integrity.problems.len() {
            0 => "the database is sound".to_owned(),
            1 => "the database has a problem; docs/operations.md describes what to do".to_owned(),
            count => format!(
                "the database has {count} problems; docs/operations.md describes what to do"
            ),
        };
        writeln!(
            out,
            "{verdict} ({}, of which {} are unused)",
            size(integrity.bytes),
            size(integrity.free_bytes)
        )?;
    }
    Ok(if integrity.problems.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Formats a number of bytes.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{} kB", bytes.div_ceil(1_000)),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_readable_unit() {
        assert_eq!(size(0), "0 kB");
        assert_eq!(size(4_096), "5 kB");
        assert_eq!(size(1_700_000_000), "1700.0 MB");
    }
}
