//! Compares a document with the table of known keys: reports unknown keys, and lists where a map is
//! required.

use std::path::Path;

use crate::config::dotted;

use super::document::{Content, Entry, Node};
use super::error::{Origin, Problem, Warning};
use super::file_location::FileLocation;
use super::known_keys;

/// Minimum length of a key in an open section that is compared with the known ones.
const MIN_COMPARED_LENGTH: usize = 6;

/// Section whose unknown keys are errors: a misspelt restriction would let people in.
const STRICT: &str = "auth.oidc";

/// Result of the comparison.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    /// Unknown and duplicate keys.
    pub(super) warnings: Vec<Warning>,
    /// Lists where a map is required, and unknown keys in the section `auth.oidc`.
    pub(super) problems: Vec<Problem>,
}

/// Compares every key of `root` with the table.
pub(super) fn compare(root: &Node, file: &Path) -> Comparison {
    let mut search = Search {
        file,
        path: Vec::new(),
        comparison: Comparison::default(),
    };
    search.visit(root, "");
    search.comparison
}

/// Returns a warning about `key` in the section `at`; `None` if the key is valid.
pub(super) fn key_warning(at: &str, key: &str) -> Option<String> {
    let section = known_keys::section(at)?;
    if section.keys().any(|known| known == key) {
        return None;
    }
    let suggestion = nearest(key, section.keys());
    match (section.open, suggestion) {
        (false, Some(suggestion)) => Some(format!(
            "is not a known key and has no effect; did you mean `{suggestion}`?"
        )),
        (false, None) => Some("is not a known key and has no effect".to_owned()),
        (true, Some(suggestion)) if key.len() >= MIN_COMPARED_LENGTH => Some(format!(
            "is not a known key and is passed on unchanged; did you mean `{suggestion}`?"
        )),
        (true, _) => None,
    }
}

/// Returns the path of `key`, inside the section `at`, in the table of known keys: `at.*` if the
/// section accepts any name.
pub(super) fn below(at: &str, key: &str) -> String {
    let key = if key == "mcpServers" {
        "mcp_servers"
    } else {
        key
    };
    let exact = if at.is_empty() {
        key.to_owned()
    } else {
        format!("{at}.{key}")
    };
    let any = format!("{at}.*");
    match known_keys::section(&any) {
        Some(_) => any,
        None => exact,
    }
}

/// Returns the known key that is most similar to `word`, if one is similar enough.
pub(super) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).clamp(1, 3);
    known
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

struct Search<'a> {
    file: &'a Path,
    path: Vec<String>,
    comparison: Comparison,
}

impl Search<'_> {
    fn visit(&mut self, node: &Node, at: &str) {
        match &node.content {
            Content::Map(entries) => {
                for entry in entries {
                    self.path.push(entry.key.clone());
                    self.check_entry(entry, at);
                    self.visit(&entry.value, &below(at, &entry.key));
                    self.path.pop();
                }
            }
            Content::List(items) => {
                let each = format!("{at}[]");
                if known_keys::section(at).is_some() && known_keys::section(&each).is_none() {
                    self.refuse_list(node);
                    return;
                }
                for (position, item) in items.iter().enumerate() {
                    self.path.push(position.to_string());
                    self.visit(item, &each);
                    self.path.pop();
                }
            }
            _ => {}
        }
    }

    fn check_entry(&mut self, entry: &Entry, at: &str) {
        match key_warning(at, &entry.key) {
            Some(message) if at.starts_with(STRICT) => {
                let problem = self.problem(entry.place, message);
                self.comparison.problems.push(problem);
            }
            Some(message) => self.warn(entry, message),
            None => {}
        }
        if let Some(earlier) = entry.replaces {
            let message = format!(
                "is a duplicate; the one in line {} has no effect",
                earlier.line
            );
            self.warn(entry, message);
        }
    }

    fn warn(&mut self, entry: &Entry, message: String) {
        let warning = self.problem(entry.place, message);
        self.comparison.warnings.push(warning);
    }

    fn refuse_list(&mut self, node: &Node) {
        let problem = self.problem(node.place, "is a list, allowed: a map".to_owned());
        self.comparison.problems.push(problem);
    }

    fn problem(&self, place: FileLocation, message: String) -> Problem {
        Problem {
            origin: Origin::File {
                path: self.file.to_owned(),
                place,
            },
            key: dotted(&self.path),
            message,
        }
    }
}

/// Returns the edit distance of two words; a swap of neighbours counts as one edit.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (row, a) in left.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, b) in right.iter().enumerate() {
            let mut best = (last[column] + usize::from(a != b))
                .min(last[column + 1] + 1)
                .min(current[column] + 1);
            let swapped = row > 0 && column > 0 && left[row - 1] == *b && right[column - 1] == *a;
            if swapped {
                best = best.min(before_last[column - 1] + 1);
            }
            current.push(best);
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last[right.len()]
}

#[cfg(test)]
#[path = "unknown_keys_tests.rs"]
mod tests;
