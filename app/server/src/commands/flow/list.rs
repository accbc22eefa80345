//! `deerflow flow list`: lists the system flows of the configured folder.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use deerflow_gateway::flows::{FlowRules, SystemSnapshot};
use harness::clock::{Clock, SystemClock};
use harness::config_file::{Environment, load};
use serde_json::{Value, json};

use super::report::finding_line;
use crate::cli::ListArgs;
use crate::commands::table::{Table, write_json};
use crate::flows::{BuiltInKinds, folder_of, snapshot};

/// Writes the flows, then one line per problem of the files that are not valid.
pub(super) fn list(
    args: &ListArgs,
    environment: &Environment,
    out: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    let loaded = load(args.file.config.as_deref(), environment)?;
    let folder = folder_of(&loaded.config.flows, loaded.path.as_deref());
    let rules = FlowRules::new(Arc::new(BuiltInKinds::default()));
    let found = snapshot(&folder, &rules, SystemClock.now())
        .with_context(|| format!("cannot read {}", folder.display()))?;
    if args.json {
        write_json(&as_json(&found), out)?;
        return Ok(ExitCode::SUCCESS);
    }
    if found.flows.is_empty() && found.problems.is_empty() {
        writeln!(out, "no flows in {}", folder.display())?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(&["ID", "NAME", "NODES", "AGENTS", "FILE"]);
    for (slug, flow) in &found.flows {
        table.row([
            slug.clone(),
            flow.summary.name.clone(),
            flow.summary.node_count.to_string(),
            flow.summary.agent_count.to_string(),
            flow.path.clone(),
        ]);
    }
    table.write(out)?;
    for problem in &found.problems {
        let path = folder.join(&problem.path);
        for error in &problem.errors {
            writeln!(out, "{}", finding_line(&path.display(), "error", error))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn as_json(found: &SystemSnapshot) -> Value {
    let flows = found.flows.iter().map(|(slug, flow)| {
        json!({
            "id": slug,
            "name": flow.summary.name,
            "description": flow.summary.description,
            "nodes": flow.summary.node_count,
            "agents": flow.summary.agent_count,
            "contentHash": flow.content_hash,
            "file": flow.path,
        })
    });
    let broken = found
        .problems
        .iter()
        .map(|problem| json!({"id": problem.slug, "file": problem.path, "errors": problem.errors}));
    json!({"flows": flows.collect::<Vec<_>>(), "broken": broken.collect::<Vec<_>>()})
}
