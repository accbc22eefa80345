//! Options of `flow`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::file_args::FileArgs;

/// Subcommands of `flow`. None of them needs a server.
#[derive(Debug, Clone, Subcommand)]
pub enum FlowCommand {
    /// Validate files and print each problem on one line.
    Check(CheckArgs),
    /// Print the graph of a flow.
    Draw(DrawArgs),
    /// Run a flow at this terminal.
    Run(Box<RunFlowArgs>),
    /// List the system flows, and the files that are not valid.
    List(ListArgs),
    /// Add flows to the folder of system flows: a file, a project folder, or a zip archive.
    Import(ImportArgs),
    /// Print the JSON Schema of flow documents, for editors.
    Schema,
}

/// Options of `flow check`.
#[derive(Debug, Clone, Args)]
pub struct CheckArgs {
    /// Files, YAML or JSON.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Report unknown node kinds as warnings; such nodes do nothing.
    #[arg(long)]
    pub lenient: bool,
}

/// Options of `flow draw`.
#[derive(Debug, Clone, Args)]
pub struct DrawArgs {
    /// File, YAML or JSON.
    pub file: PathBuf,
    /// Format of the graph.
    #[arg(long, value_enum, default_value_t = DrawFormat::Mermaid)]
    pub format: DrawFormat,
}

/// Format of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DrawFormat {
    /// Mermaid text.
    Mermaid,
    /// JSON with nodes and edges.
    Json,
}

/// Options of `flow run`.
#[derive(Debug, Clone, Args)]
pub struct RunFlowArgs {
    /// File, YAML or JSON. Sub-flows are files of the same folder.
    #[arg(value_name = "FILE")]
    pub flow: PathBuf,
    /// Prompt of the run.
    pub prompt: Option<String>,
    /// Dry run: every agent gives a fixed answer, no model is called and no configuration is read.
    #[arg(long)]
    pub fake: bool,
    /// Stop after this node and print its text.
    #[arg(long, value_name = "NODE")]
    pub until: Option<String>,
    /// Print each event as a line of JSON.
    #[arg(long)]
    pub json: bool,
    /// More fields of the input, as a JSON object.
    #[arg(long, value_name = "JSON")]
    pub input: Option<String>,
    /// Maximum number of supersteps.
    #[arg(long, value_name = "STEPS", default_value_t = 100)]
    pub recursion_limit: u64,
    /// Configuration file.
    #[command(flatten)]
    pub file: FileArgs,
}

/// Options of `flow list`.
#[derive(Debug, Clone, Default, Args)]
pub struct ListArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Configuration file.
    #[command(flatten)]
    pub file: FileArgs,
}

/// Options of `flow import`.
#[derive(Debug, Clone, Args)]
pub struct ImportArgs {
    /// File, folder or zip archive.
    pub source: PathBuf,
    /// Replace what an earlier import of the same name added.
    #[arg(long)]
    pub replace: bool,
    /// Configuration file.
    #[command(flatten)]
    pub file: FileArgs,
}
