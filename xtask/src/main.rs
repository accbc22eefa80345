//! Chores of this workspace that need more than one cargo command: `cargo xtask --help` lists them.

mod bench;
mod boundary;
mod config;
mod history;
mod report;
mod tidy;
mod tokens;
mod workspace;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::workspace::Workspace;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Checks and chores of this workspace")]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Check who depends on whom: crates, restricted libraries, and the layers inside harness
    Boundary(Root),
    /// Check the shape of the source files
    Tidy(Root),
    /// Build the gateway and the load generator with optimization, and measure
    Bench {
        #[command(flatten)]
        root: Root,
        /// The cargo profile to measure; `dist` is what is shipped
        #[arg(long, default_value = "release")]
        profile: String,
        /// Handed to the load generator as they are
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Check that the example configuration is accepted by the real binary
    Config(Root),
    /// Check what clients of a cluster saw against what they were promised
    CheckHistory {
        /// Histories as `docs/histories.md` describes them
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
}

#[derive(Args)]
struct Root {
    /// The workspace to work on, when it is not the one around the current folder
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

impl Root {
    fn open(&self) -> anyhow::Result<Workspace> {
        Workspace::open(self.root.as_deref())
    }
}

fn main() -> anyhow::Result<ExitCode> {
    match Cli::parse().chore {
        Chore::Boundary(root) => Ok(report::print("boundary", &boundary::check(&root.open()?)?)),
        Chore::Tidy(root) => Ok(report::print("tidy", &tidy::check(&root.open()?)?)),
        Chore::Bench {
            root,
            profile,
            args,
        } => bench::run(&root.open()?, &profile, &args),
        Chore::Config(root) => config::run(&root.open()?),
        Chore::CheckHistory { files } => Ok(report::print("history", &history::check(&files)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bench_hands_on_what_it_does_not_know() {
        let line = [
            "xtask",
            "bench",
            "--profile",
            "dist",
            "--viewers",
            "9",
            "stream",
        ];
        let Chore::Bench { profile, args, .. } = Cli::parse_from(line).chore else {
            panic!("not the bench chore");
        };
        assert_eq!(profile, "dist");
        assert_eq!(args, ["--viewers", "9", "stream"]);
    }
}
