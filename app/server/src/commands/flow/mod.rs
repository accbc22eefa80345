//! `deerflow flow`: checks, draws, runs, lists and imports flows, without a server.

mod check;
mod document;
mod draw;
mod import;
mod import_source;
mod installation;
mod list;
mod nested_agents;
mod progress;
mod questions;
mod registry;
mod report;
mod session;
mod start;
mod subflows;

use std::process::ExitCode;

use deerflow_flow::schema::json_schema;
use harness::config_file::Environment;

use super::table::write_json;
use crate::cli::FlowCommand;
pub(crate) use report::finding_line;

/// Runs the command.
///
/// # Errors
/// The configuration cannot be used, or the output cannot be written.
pub async fn run(command: FlowCommand, environment: Environment) -> anyhow::Result<ExitCode> {
    let (mut out, mut err) = (std::io::stdout(), std::io::stderr());
    match command {
        FlowCommand::Check(args) => check::check(&args, &mut out, &mut err),
        FlowCommand::Draw(args) => draw::draw(&args, &mut out, &mut err),
        FlowCommand::Run(args) => start::run_at_terminal(&args, environment).await,
        FlowCommand::Import(args) => import::import(&args, &environment, &mut out, &mut err),
        FlowCommand::List(args) => list::list(&args, &environment, &mut out),
        FlowCommand::Schema => {
            write_json(&json_schema(), &mut out)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

#[cfg(test)]
mod import_tests;
#[cfg(test)]
mod installation_tests;
#[cfg(test)]
#[path = "flow_tests.rs"]
mod tests;
