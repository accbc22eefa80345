//! `deerflow config`: checks and upgrades `config.yaml`.

use std::io::{self, Write};
use std::process::ExitCode;

use harness::config::CURRENT_CONFIG_VERSION;
use harness::config_file::{Environment, load, locate};

use crate::cli::{ConfigCommand, FileArgs};
use crate::config::{EXAMPLE, missing_classes, upgrade_file};

/// Runs the command and writes its output to `out`.
pub fn run(
    command: &ConfigCommand,
    environment: &Environment,
    out: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    match command {
        ConfigCommand::Check(args) => check(args, environment, out),
        ConfigCommand::Upgrade(args) => upgrade(args, environment, out),
        ConfigCommand::Example => Ok(write!(out, "{EXAMPLE}").map(|()| ExitCode::SUCCESS)?),
    }
}

fn check(
    args: &FileArgs,
    environment: &Environment,
    out: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    match load(args.config.as_deref(), environment) {
        Ok(loaded) => {
            for warning in &loaded.warnings {
                writeln!(out, "warning: {warning}")?;
            }
            for missing in missing_classes(&loaded.config) {
                writeln!(out, "warning: {}", missing.problem)?;
            }
            match &loaded.path {
                Some(path) => writeln!(out, "{} is valid", path.display())?,
                None => writeln!(out, "no config.yaml found, the built-in defaults are used")?,
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            for line in error.to_string().lines() {
                writeln!(out, "error: {line}")?;
            }
            Ok(ExitCode::FAILURE)
        }
    }
}

fn upgrade(
    args: &FileArgs,
    environment: &Environment,
    out: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    let Some(path) = locate(args.config.as_deref(), environment)? else {
        writeln!(
            out,
            "no config.yaml found; create one with `deerflow config example > config.yaml`"
        )?;
        return Ok(ExitCode::FAILURE);
    };
    match upgrade_file(&path) {
        Ok(None) => writeln!(out, "{} is up to date", path.display())?,
        Ok(Some(upgrade)) => {
            for key in &upgrade.renamed {
                writeln!(out, "renamed the class path of {key}")?;
            }
            for key in &upgrade.added {
                writeln!(out, "added {key}")?;
            }
            writeln!(
                out,
                "upgraded {} from version {} to {CURRENT_CONFIG_VERSION}; the old file is {}",
                path.display(),
                upgrade.from,
                upgrade.backup.display()
            )?;
        }
        Err(error) => {
            writeln!(out, "error: {} is unchanged: {error}", path.display())?;
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Locks standard output.
pub fn stdout() -> io::StdoutLock<'static> {
    io::stdout().lock()
}
