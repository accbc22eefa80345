//! Checks the edges between the top modules of each crate against a table that states them exactly.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use anyhow::{Context, Result, bail};

use crate::report::Violation;
use crate::source::{Crate, edges};
use crate::workspace::Workspace;

/// Table of edges; `cargo xtask boundary --print-edges` prints it from the code.
const TABLE: &str = "xtask/src/boundary/modules.txt";

const HEAD: &str = "\
# Top modules of each crate, and the modules of the crate that each one names: exact, without test code.
# A new edge is an architectural decision. `cargo xtask boundary --print-edges` prints this file from the code.
";

/// Smallest number of top modules for which a crate has rows.
const MIN_MODULES: usize = 2;

/// Edges of a crate: for each top module the modules that it names, each with the first use.
type Edges = BTreeMap<String, BTreeMap<String, String>>;

/// Rows of the table by crate and module.
type Rows = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

pub(super) fn check(workspace: &Workspace, crates: &[Crate]) -> Result<Vec<Violation>> {
    let path = workspace.root().join(TABLE);
    let text = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
    let mut rows = parse(&text)?;
    let mut violations = Vec::new();
    for crate_ in crates {
        let found = top_edges(crate_);
        let listed = rows.remove(&crate_.name).unwrap_or_default();
        compare(&crate_.name, found, listed, &mut violations);
    }
    violations.extend(
        rows.into_keys()
            .map(|name| stale(format!("there is no crate {name}"))),
    );
    Ok(violations)
}

/// Returns the table as the code has it.
pub(super) fn print(crates: &[Crate]) -> String {
    let mut text = HEAD.to_owned();
    for crate_ in crates {
        let found = top_edges(crate_);
        if !found.is_empty() {
            let _ = writeln!(text, "\n[{}]", crate_.name);
        }
        for (module, targets) in found {
            let names: Vec<String> = targets.into_keys().collect();
            let _ = writeln!(
                text,
                "{}",
                format!("{module}: {}", names.join(" ")).trim_end()
            );
        }
    }
    text
}

fn top_edges(crate_: &Crate) -> Edges {
    let tops = crate_
        .modules
        .iter()
        .filter_map(|module| module.path.first());
    let mut found: Edges = tops.map(|top| (top.clone(), BTreeMap::new())).collect();
    if found.len() < MIN_MODULES {
        return Edges::new();
    }
    for edge in edges(crate_) {
        let (from, to) = (&crate_.modules[edge.from], &crate_.modules[edge.to]);
        if let (Some(top), Some(target)) = (from.path.first(), to.path.first())
            && top != target
        {
            let targets = found.entry(top.clone()).or_default();
            targets
                .entry(target.clone())
                .or_insert_with(|| format!("{}:{}", crate_.path_of(from), edge.line));
        }
    }
    found
}

fn compare(
    crate_: &str,
    found: Edges,
    mut listed: BTreeMap<String, BTreeSet<String>>,
    violations: &mut Vec<Violation>,
) {
    for (module, targets) in found {
        let Some(mut allowed) = listed.remove(&module) else {
            let problem =
                format!("no row for module `{module}` of {crate_}: add one to state its edges");
            violations.push(Violation::new(TABLE, problem));
            continue;
        };
        for (target, place) in targets {
            if !allowed.remove(&target) {
                let problem = format!(
                    "`{module}` may not name `{target}` in {crate_}: move the item to a module that both may \
                     name, or add the edge to {TABLE}"
                );
                violations.push(Violation::new(place, problem));
            }
        }
        for target in allowed {
            violations.push(stale(format!(
                "`{module}` of {crate_} does not name `{target}`"
            )));
        }
    }
    for module in listed.into_keys() {
        violations.push(stale(format!("{crate_} has no module `{module}`")));
    }
}

fn stale(fact: String) -> Violation {
    Violation::new(TABLE, format!("{fact}: remove it from the table"))
}

fn parse(text: &str) -> Result<Rows> {
    let mut rows = Rows::new();
    let mut current = None;
    for (index, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            current = Some(name.to_owned());
            continue;
        }
        let (Some(crate_), Some((module, targets))) = (&current, line.split_once(':')) else {
            bail!(
                "{TABLE}:{}: expected `[crate]` or `module: modules`",
                index + 1
            );
        };
        let targets = targets.split_whitespace().map(str::to_owned).collect();
        let modules = rows.entry(crate_.clone()).or_default();
        if modules.insert(module.to_owned(), targets).is_some() {
            bail!("{TABLE}:{}: {module} is listed twice", index + 1);
        }
    }
    Ok(rows)
}

#[cfg(test)]
#[path = "modules_tests.rs"]
mod tests;
