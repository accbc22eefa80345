//! `deerflow flow draw`: prints the graph of a flow.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context as _;
use deerflow_flow::drawing::{graph, mermaid};
use serde_json::json;

use super::document::FlowFile;
use super::report::write_findings;
use crate::cli::{DrawArgs, DrawFormat};
use crate::commands::table::write_json;
use crate::flows::BuiltInKinds;

/// Writes the graph to `out`. The findings of a flow that is not valid go to `err`.
pub(super) fn draw(
    args: &DrawArgs,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    let path = args.file.display();
    let file = FlowFile::read(&args.file).with_context(|| format!("cannot read {path}"))?;
    let compiled = match file.compile(&BuiltInKinds::default(), false) {
        Ok(compiled) => compiled,
        Err(validation) => {
            write_findings(&path, &validation, err)?;
            return Ok(ExitCode::FAILURE);
        }
    };
    let graph = graph(&compiled.flow);
    match args.format {
        DrawFormat::Mermaid => writeln!(out, "{}", mermaid(&graph).trim_end())?,
        DrawFormat::Json => write_json(&json!(graph), out)?,
    }
    Ok(ExitCode::SUCCESS)
}
