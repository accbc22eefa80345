//! Limit of file lengths, and the list of exceptions.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, bail};
use cargo_metadata::camino::{Utf8Path, Utf8PathBuf};

use super::types::WIRING;
use crate::report::Violation;
use crate::workspace::{SourceFile, Workspace};

/// Maximum number of lines of a file.
const LIMIT: usize = 400;

/// Maximum number of lines of a file in the wiring.
const WIRING_LIMIT: usize = 100;

/// One `path cap reason` per line; `#` starts a comment line.
const LIST: &str = "xtask/src/tidy/oversize.txt";

/// Files that may exceed the limit, each with its own cap. A cap may only shrink: it equals the
/// length of its file, and is removed when the file fits.
#[derive(Debug)]
pub(super) struct Oversize {
    caps: BTreeMap<Utf8PathBuf, usize>,
}

impl Oversize {
    /// Reads the list; without a file there are no exceptions.
    pub(super) fn load(workspace: &Workspace) -> Result<Self> {
        let path = workspace.root().join(LIST);
        if !path.exists() {
            return Self::parse("");
        }
        let text = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self> {
        let mut caps = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let mut words = line.splitn(3, ' ');
            let (Some(path), Some(cap), Some(_reason)) = (words.next(), words.next(), words.next())
            else {
                bail!("{LIST}:{}: expected `path cap reason`", index + 1);
            };
            let cap = cap
                .parse()
                .with_context(|| format!("{LIST}:{}: the cap {cap:?} is no number", index + 1))?;
            if caps.insert(Utf8PathBuf::from(path), cap).is_some() {
                bail!("{LIST}:{}: {path} is listed twice", index + 1);
            }
        }
        Ok(Self { caps })
    }

    /// Checks the length of a file and removes it from the list.
    pub(super) fn check(&mut self, file: &SourceFile) -> Option<Violation> {
        let lines = file.text.lines().count();
        let cap = self.caps.remove(&file.path);
        let limit = limit_of(&file.path);
        let fits = lines <= limit || is_free(&file.path);
        let problem = match cap {
            None if fits => return None,
            None => format!("{lines} lines, more than {limit}: split it by subject"),
            Some(_) if fits => format!("fits again: remove it from {LIST}"),
            Some(cap) if lines > cap => {
                format!("{lines} lines, more than its cap of {cap} in {LIST}")
            }
            Some(cap) if lines < cap => format!("{lines} lines: lower its cap of {cap} in {LIST}"),
            Some(_) => return None,
        };
        Some(Violation::new(file.path.as_str(), problem))
    }

    /// Returns a violation for each listed file that does not exist.
    pub(super) fn missing_files(self) -> impl Iterator<Item = Violation> {
        self.caps.into_keys().map(|path| {
            Violation::new(
                LIST,
                format!("{path} does not exist: remove it from the list"),
            )
        })
    }
}

/// Returns the limit of a file: one of the wiring only constructs the parts of one area.
fn limit_of(path: &Utf8Path) -> usize {
    if path.starts_with(WIRING) {
        WIRING_LIMIT
    } else {
        LIMIT
    }
}

/// Migrations have no limit, because they never change.
fn is_free(path: &Utf8Path) -> bool {
    path.components()
        .any(|part| matches!(part.as_str(), "migration" | "migrations"))
}

#[cfg(test)]
#[path = "length_tests.rs"]
mod tests;
