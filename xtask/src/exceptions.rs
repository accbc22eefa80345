//! Lists of exceptions to a rule that may only shrink.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, bail};

use crate::report::Violation;
use crate::workspace::Workspace;

/// Exceptions, one `key reason` per line; `#` starts a comment line.
#[derive(Debug)]
pub(crate) struct Exceptions {
    list: &'static str,
    /// Keys, and whether a check needed them.
    keys: BTreeMap<String, bool>,
}

impl Exceptions {
    /// Reads `list`, a path relative to the workspace; without a file there are no exceptions.
    pub(crate) fn load(workspace: &Workspace, list: &'static str) -> Result<Self> {
        let path = workspace.root().join(list);
        if !path.exists() {
            return Self::parse(list, "");
        }
        let text = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
        Self::parse(list, &text)
    }

    pub(crate) fn parse(list: &'static str, text: &str) -> Result<Self> {
        let mut keys = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let Some((key, _reason)) = line.split_once(' ') else {
                bail!("{list}:{}: expected `key reason`", index + 1);
            };
            if keys.insert(key.to_owned(), false).is_some() {
                bail!("{list}:{}: {key} is listed twice", index + 1);
            }
        }
        Ok(Self { list, keys })
    }

    /// Reports whether `key` is listed, and marks it as needed.
    pub(crate) fn allow(&mut self, key: &str) -> bool {
        self.keys
            .get_mut(key)
            .map(|needed| *needed = true)
            .is_some()
    }

    /// Returns a violation for each listed key that no check needed.
    pub(crate) fn unneeded(self) -> impl Iterator<Item = Violation> {
        let list = self.list;
        self.keys
            .into_iter()
            .filter(|(_, needed)| !needed)
            .map(move |(key, _)| {
                Violation::new(
                    list,
                    format!("{key} violates no rule: remove it from the list"),
                )
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unneeded_exception_is_reported() {
        let mut list = Exceptions::parse("a.txt", "# comment\n\nX:3 why\nY:3 why\n").unwrap();
        assert!(list.allow("X:3") && !list.allow("X:4"));
        let found: Vec<String> = list.unneeded().map(|found| found.to_string()).collect();
        assert_eq!(
            found,
            ["a.txt: Y:3 violates no rule: remove it from the list"]
        );
    }

    #[test]
    fn exception_without_reason_is_rejected() {
        let error = Exceptions::parse("a.txt", "X\n").unwrap_err().to_string();
        assert!(error.contains("a.txt:1: expected"), "{error}");
    }
}
