//! Checks that files, and folders that lie in one folder, do not import each other in a circle.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

use anyhow::{Result, bail};

use crate::report::Violation;
use crate::source::{Crate, Edge, circles, edges};
use crate::workspace::Workspace;

/// Circles that are left; `cargo xtask boundary --print-circles` prints it from the code.
const LIST: &str = "xtask/src/boundary/circles.txt";

const HEAD: &str = "\
# Circles of imports that are left: one circle of files, or of folders in one folder, per line with a reason.
# The list may only shrink. `cargo xtask boundary --print-circles` prints this file from the code.
";

/// Reason that is printed for a circle that the list does not have.
const NO_REASON: &str = "(no reason yet)";

/// Files or folders of one circle, relative to the workspace; a folder ends in `/`.
type Circle = BTreeSet<String>;

#[derive(Debug)]
struct Listed {
    circle: Circle,
    reason: String,
}

pub(super) fn check(workspace: &Workspace, crates: &[Crate]) -> Result<Vec<Violation>> {
    Ok(compare(&all(crates), &load(workspace)?))
}

/// Returns the list as the code has it, with the reasons of today's list.
pub(super) fn print(workspace: &Workspace, crates: &[Crate]) -> Result<String> {
    let listed = load(workspace)?;
    let mut text = HEAD.to_owned();
    for circle in all(crates) {
        let known = listed.iter().find(|row| circle.is_subset(&row.circle));
        let reason = known.map_or(NO_REASON, |row| row.reason.as_str());
        let names: Vec<String> = circle.into_iter().collect();
        let _ = writeln!(text, "{} | {reason}", names.join(" "));
    }
    Ok(text)
}

fn compare(found: &[Circle], listed: &[Listed]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for circle in found {
        if !listed.iter().any(|row| circle.is_subset(&row.circle)) {
            let names: Vec<&str> = circle.iter().map(String::as_str).collect();
            let problem = format!(
                "import each other in a circle: move what they share to a file below them ({})",
                names.join(" ")
            );
            violations.push(Violation::new(names[0], problem));
        }
    }
    for row in listed {
        let remaining: Circle = found
            .iter()
            .filter(|circle| circle.is_subset(&row.circle))
            .flatten()
            .cloned()
            .collect();
        for name in row.circle.difference(&remaining) {
            let problem = format!("{name} is in no circle any more: remove it from the list");
            violations.push(Violation::new(LIST, problem));
        }
    }
    violations
}

fn all(crates: &[Crate]) -> Vec<Circle> {
    crates
        .iter()
        .flat_map(|crate_| {
            let edges = edges(crate_);
            let mut found = of_files(crate_, &edges);
            found.extend(of_folders(crate_, &edges));
            found
        })
        .collect()
}

fn of_files(crate_: &Crate, edges: &[Edge]) -> Vec<Circle> {
    let name = |place: usize| crate_.path_of(&crate_.modules[place]).into_string();
    let named = edges
        .iter()
        .map(|edge| (name(edge.from), name(edge.to)))
        .collect();
    circles(&named).into_iter().map(Circle::from_iter).collect()
}

/// Returns circles among the folders that lie in one folder.
fn of_folders(crate_: &Crate, edges: &[Edge]) -> Vec<Circle> {
    let folders: BTreeSet<&[String]> = crate_
        .modules
        .iter()
        .flat_map(|module| (0..module.path.len()).map(|end| &module.path[..end]))
        .collect();
    let mut siblings = BTreeSet::new();
    for edge in edges {
        let (from, to) = (
            crate_.modules[edge.from].path.as_slice(),
            crate_.modules[edge.to].path.as_slice(),
        );
        let common = from.iter().zip(to).take_while(|(a, b)| a == b).count();
        if common < from.len() && common < to.len() {
            let pair = (&from[..=common], &to[..=common]);
            if folders.contains(pair.0) && folders.contains(pair.1) {
                siblings.insert(pair);
            }
        }
    }
    let name = |path: &[String]| format!("{}/{}/", crate_.folder, path.join("/"));
    circles(&siblings)
        .into_iter()
        .map(|circle| circle.into_iter().map(name).collect())
        .collect()
}

fn load(workspace: &Workspace) -> Result<Vec<Listed>> {
    let path = workspace.root().join(LIST);
    if !path.exists() {
        return Ok(Vec::new());
    }
    parse(&fs::read_to_string(path)?)
}

fn parse(text: &str) -> Result<Vec<Listed>> {
    let mut listed = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((names, reason)) = line.split_once(" | ") else {
            bail!("{LIST}:{}: expected `paths | reason`", index + 1);
        };
        listed.push(Listed {
            circle: names.split_whitespace().map(str::to_owned).collect(),
            reason: reason.to_owned(),
        });
    }
    Ok(listed)
}

#[cfg(test)]
#[path = "circles_tests.rs"]
mod tests;
