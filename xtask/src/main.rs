//! Workspace tasks that need more than one cargo command; `cargo xtask --help` lists them.

mod bench;
mod boundary;
mod config;
mod exceptions;
mod history;
mod public_api;
mod report;
mod source;
mod tidy;
mod tokens;
mod workspace;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::workspace::Workspace;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Checks and tasks of this workspace")]
struct Cli {
    #[command(subcommand)]
    chore: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Check dependencies between crates, on restricted libraries, and between modules
    Boundary {
        #[command(flatten)]
        root: Root,
        /// Print the table of edges between modules as the code has it
        #[arg(long)]
        print_edges: bool,
        /// Print the list of import circles as the code has it
        #[arg(long, conflicts_with = "print_edges")]
        print_circles: bool,
    },
    /// Check the shape and the language of the source files
    Tidy(Root),
    /// Build the gateway and the load generator with optimizations, and run the benchmark
    Bench {
        #[command(flatten)]
        root: Root,
        /// Cargo profile to measure; `dist` is the release profile
        #[arg(long, default_value = "release")]
        profile: String,
        /// Arguments of the load generator
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Compare the public API of each published crate with its snapshot in docs/public-api
    PublicApi {
        #[command(flatten)]
        root: Root,
        /// Write the snapshots instead
        #[arg(long)]
        write: bool,
    },
    /// Check the example configuration with the real binary
    Config(Root),
    /// Check recorded cluster histories for consistency
    CheckHistory {
        /// History files; `docs/histories.md` describes the format
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
}

#[derive(Args)]
struct Root {
    /// Workspace to use; default: the one that contains the current folder
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
        Task::Boundary {
            root,
            print_edges,
            print_circles,
        } => {
            let workspace = root.open()?;
            if print_edges {
                return report::print_table(&boundary::print_edges(&workspace)?);
            }
            if print_circles {
                return report::print_table(&boundary::print_circles(&workspace)?);
            }
            Ok(report::print("boundary", &boundary::check(&workspace)?))
        }
        Task::Tidy(root) => Ok(report::print("tidy", &tidy::check(&root.open()?)?)),
        Task::Bench {
            root,
            profile,
            args,
        } => bench::run(&root.open()?, &profile, &args),
        Task::PublicApi { root, write } => public_api::run(&root.open()?, write),
        Task::Config(root) => config::run(&root.open()?),
        Task::CheckHistory { files } => Ok(report::print("history", &history::check(&files)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bench_passes_unknown_arguments_on() {
        let line = [
            "xtask",
            "bench",
            "--profile",
            "dist",
            "--viewers",
            "9",
            "stream",
        ];
        let Task::Bench { profile, args, .. } = Cli::parse_from(line).chore else {
            panic!("not the bench task");
        };
        assert_eq!(profile, "dist");
        assert_eq!(args, ["--viewers", "9", "stream"]);
    }
}
