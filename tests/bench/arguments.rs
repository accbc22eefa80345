//! Command-line arguments.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

/// Loads the gateway and prints a Markdown report on standard output.
#[derive(Debug, Parser)]
#[command(name = "deerflow-bench", version)]
pub(crate) struct Arguments {
    /// The `deerflow` binary; without it only the baselines are measured.
    #[arg(long)]
    pub(super) gateway: Option<PathBuf>,
    /// Measure only these chapters.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Chapter>,
    /// Shorter loads, for a first impression.
    #[arg(long)]
    pub(super) quick: bool,
    /// File for a chart of the CPU time per run, as SVG.
    #[arg(long, value_name = "FILE")]
    pub(super) chart: Option<PathBuf>,
    /// Folder on the disk to measure; it contains the gateway's data during the run.
    #[arg(long)]
    pub(super) storage_dir: Option<PathBuf>,
    /// Measure gateways on this Postgres server instead of SQLite on a disk and in memory.
    #[arg(long, value_name = "URL")]
    pub(super) postgres: Option<String>,
    /// Use stateless runs in the chapters `runs` and `tokens` instead of a thread for each.
    #[arg(long)]
    pub(super) stateless: bool,
    #[command(subcommand)]
    pub(super) part: Option<Part>,
}

impl Arguments {
    pub(super) fn includes(&self, chapter: Chapter) -> bool {
        self.only.is_empty() || self.only.contains(&chapter)
    }
}

/// A part of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Chapter {
    /// Time from start to ready, three times with a fresh and an existing database; idle memory and
    /// the binary's size.
    Start,
    /// Runs of one token at 1, 16, 200 and 1000 clients.
    Runs,
    /// Streams of 200 tokens as fast as they go.
    Tokens,
    /// 1000 streams at a token every 10 ms, in a new process and again in the same one.
    Live,
    /// Both dialects at 16 clients.
    Dialects,
    /// Threads of 10, 500 and 1,000 messages against new ones.
    Lengths,
    /// A thread of 250 runs: its first ten and its last ten.
    Turns,
    /// Bytes of a `values` stream of 500 messages.
    Values,
    /// Runs with five tool calls.
    Tools,
    /// Thousands of viewers of one run.
    Viewers,
    /// Runs of flows, and what stored flows cost other runs.
    Flows,
    /// Costs of sign-in for requests, runs and streams.
    SignIn,
    /// 200 streams of one thread through the streaming protocol, and its cost per token.
    Protocol,
}

/// A process of the benchmark that is this program again.
#[derive(Debug, Subcommand)]
pub(super) enum Part {
    /// Streams the fixed reply.
    #[command(hide = true)]
    Provider,
    /// Relays the provider's stream.
    #[command(hide = true)]
    Relay {
        /// The provider's address.
        provider: String,
    },
}
