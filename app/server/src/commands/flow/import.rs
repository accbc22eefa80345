//! `deerflow flow import`: adds flows to the folder of system flows, all or none.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use deerflow_gateway::flows::{FlowRules, FoundFlow, SystemSnapshot, flows_of_project};
use harness::clock::{Clock, SystemClock};
use harness::config_file::{Environment, load};

use super::import_source::Source;
use super::report::write_findings;
use crate::cli::ImportArgs;
use crate::flows::{BuiltInKinds, folder_of, snapshot};

/// Prefix of the folder in which files are written before they are moved; scans skip such names.
const STAGING: &str = "..import-";

/// Imports a file, a project or an archive. Writes one line per flow to `out` and problems to
/// `err`; with a problem nothing is imported and the exit code is 1.
pub(super) fn import(
    args: &ImportArgs,
    environment: &Environment,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    let loaded = load(args.file.config.as_deref(), environment)?;
    let folder = folder_of(&loaded.config.flows, loaded.path.as_deref());
    let origin = args.source.display();
    let source = Source::read(&args.source).with_context(|| format!("cannot import {origin}"))?;
    let rules = FlowRules::new(Arc::new(BuiltInKinds::default()));
    let found = flows_of_project(source.files.clone());
    if found.is_empty() {
        writeln!(
            err,
            "{origin} contains no flow: YAML or JSON with `meta` and `graph`"
        )?;
        return Ok(ExitCode::FAILURE);
    }
    let known = snapshot(&folder, &rules, SystemClock.now())
        .with_context(|| format!("cannot read {}", folder.display()))?;
    let mut is_valid = true;
    for flow in &found {
        let validation = rules.check(flow.content.clone()).validation;
        let path = if source.is_folder {
            args.source.join(&flow.path)
        } else {
            args.source.clone()
        };
        write_findings(&path.display(), &validation, err)?;
        is_valid &= validation.valid;
        if let Some(conflict) = conflict(flow, &source, &known, args.replace) {
            writeln!(err, "{}: {conflict}", flow.path)?;
            is_valid = false;
        }
    }
    let target = folder.join(&source.target);
    if target.exists() && !args.replace {
        writeln!(err, "{} exists; use --replace", target.display())?;
        is_valid = false;
    }
    if !is_valid {
        return Ok(ExitCode::FAILURE);
    }
    store(&source, &folder, &target)
        .with_context(|| format!("cannot write {}", target.display()))?;
    for slug in found.iter().filter_map(|flow| flow.slug.as_deref()) {
        writeln!(out, "{slug}")?;
    }
    writeln!(err, "imported into {}", target.display())?;
    Ok(ExitCode::SUCCESS)
}

/// Returns why a flow cannot be added.
fn conflict(
    flow: &FoundFlow,
    source: &Source,
    known: &SystemSnapshot,
    replace: bool,
) -> Option<String> {
    let Some(slug) = &flow.slug else {
        return Some("the file name has no letter or digit of ASCII; rename it".to_owned());
    };
    let other = &known.flows.get(slug)?.path;
    let below = other.strip_prefix(&source.target);
    let is_own = below.is_some_and(|below| below.is_empty() || below.starts_with('/'));
    (!is_own || !replace).then(|| format!("{other} has the id {slug:?} already"))
}

/// Writes the files next to the target, then moves them to it. A target that exists is removed
/// after that.
fn store(source: &Source, folder: &Path, target: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let staging = tempfile::Builder::new()
        .prefix(STAGING)
        .tempdir_in(folder)?;
    let new = staging.path().join("new");
    for file in &source.files {
        let path = if source.is_folder {
            new.join(&file.path)
        } else {
            new.clone()
        };
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, &file.text)?;
    }
    if target.exists() {
        fs::rename(target, staging.path().join("old"))?;
    }
    fs::rename(new, target)
}
