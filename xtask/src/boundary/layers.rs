//! Checks the layers inside harness: a module may name only its own layer and those below.

use std::collections::BTreeSet;
use std::str::FromStr;

use anyhow::Result;
use cargo_metadata::camino::Utf8Path;
use proc_macro2::TokenStream;

use super::rules::{HOME, LAYERS, TESTKIT, layer_of};
use super::scan::{RootName, root_names};
use crate::report::Violation;
use crate::workspace::{SourceFile, Workspace};

const SOURCES: &str = "harness/src";

pub(super) fn check(workspace: &Workspace) -> Result<Vec<Violation>> {
    let files = workspace.rust_files(SOURCES)?;
    let paths: BTreeSet<&Utf8Path> = files.iter().map(|file| file.path.as_path()).collect();
    let mut violations = Vec::new();
    let mut homeless = BTreeSet::new();
    for file in &files {
        let module = module_of(&file.path, &paths);
        if let Some(top) = module.first()
            && top != TESTKIT
            && layer_of(top).is_none()
            && homeless.insert(top.clone())
        {
            violations.push(Violation::new(
                file.path.as_str(),
                format!("module `{top}` has no layer in {HOME}"),
            ));
        }
        check_file(file, &module, &mut violations);
    }
    Ok(violations)
}

fn check_file(file: &SourceFile, module: &[String], violations: &mut Vec<Violation>) {
    let tokens = match TokenStream::from_str(&file.text) {
        Ok(tokens) => tokens,
        Err(error) => {
            let line = error.span().start().line;
            violations.push(Violation::at(
                &file.path,
                line,
                format!("is not Rust: {error}"),
            ));
            return;
        }
    };
    for found in root_names(tokens, module, is_test_file(&file.path)) {
        if let Some(problem) = forbidden_reason(&found) {
            violations.push(Violation::at(&file.path, found.line, problem));
        }
    }
}

/// Returns why a path is not allowed; `None` if it is.
fn forbidden_reason(found: &RootName) -> Option<String> {
    let RootName { from, name, .. } = found;
    if from == name || from == TESTKIT {
        return None;
    }
    if name == TESTKIT {
        return (!found.in_test).then(|| format!("`crate::{name}` is for test code only"));
    }
    let Some(target) = layer_of(name) else {
        return Some(format!(
            "`crate::{name}` is no module with a layer in {HOME}: name the module that the item lives in"
        ));
    };
    let own = layer_of(from)?;
    (target > own).then(|| {
        format!(
            "`crate::{name}` points up: {from} is in layer {own} ({}), {name} in layer {target} ({})",
            LAYERS[own].join(", "),
            LAYERS[target].join(", "),
        )
    })
}

/// Returns the module path of a file below `harness/src`. `x_tests.rs` is the module `tests` of
/// `x`, or of the enclosing folder if there is no `x` next to it.
fn module_of(path: &Utf8Path, files: &BTreeSet<&Utf8Path>) -> Vec<String> {
    let inside = path.strip_prefix(SOURCES).unwrap_or(path);
    let folder = inside.parent().unwrap_or(Utf8Path::new(""));
    let mut module: Vec<String> = folder.components().map(|part| part.to_string()).collect();
    match inside.file_stem().unwrap_or_default() {
        "mod" => {}
        "lib" if module.is_empty() => {}
        stem => match stem.strip_suffix("_tests") {
            Some(tested) => {
                let sibling = |name: String| files.contains(path.with_file_name(name).as_path());
                if sibling(format!("{tested}.rs")) && tested != "mod" && tested != "lib" {
                    module.push(tested.to_owned());
                }
                module.push("tests".to_owned());
            }
            None => module.push(stem.to_owned()),
        },
    }
    if module.first().is_some_and(|top| top == "tests") {
        module.clear();
    }
    module
}

/// Recognised by name: shared test code is called `test_server`, `test_support` or `wire_kit`.
fn is_test_file(path: &Utf8Path) -> bool {
    let stem = path.file_stem().unwrap_or_default();
    stem == "tests"
        || stem.ends_with("_tests")
        || stem.starts_with("test_")
        || stem.ends_with("_kit")
}

#[cfg(test)]
#[path = "layers_tests.rs"]
mod tests;
