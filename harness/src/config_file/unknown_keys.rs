//! Compares a document with the table of known keys: keys nobody reads, and lists where maps belong.

use std::path::Path;

use crate::config::dotted;

use super::document::{Content, Entry, Node, Place};
use super::error::{Origin, Problem, Warning};
use super::known_keys;

/// Shortest key in an open place that is compared with the known ones.
const SHORTEST_COMPARED: usize = 6;

/// What the comparison shows.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    /// Keys that are unknown where they stand, or stand there twice.
    pub(super) warnings: Vec<Warning>,
    /// Lists where only a map is known.
    pub(super) problems: Vec<Problem>,
}

/// Compares every key of `root` with the table.
pub(super) fn compare(root: &Node, file: &Path) -> Comparison {
    let mut search = Search {
        file,
        path: Vec::new(),
        found: Comparison::default(),
    };
    search.visit(root, "");
    search.found
}

/// What to say about `key` at the place `at`; `None` when it is fine.
pub(super) fn complaint(at: &str, key: &str) -> Option<String> {
    let place = known_keys::place(at)?;
    if place.keys().any(|known| known == key) {
        return None;
    }
    let meant = nearest(key, place.keys());
    match (place.open, meant) {
        (false, Some(meant)) => Some(format!(
            "is not a known key and has no effect; did you mean `{meant}`?"
        )),
        (false, None) => Some("is not a known key and has no effect".to_owned()),
        (true, Some(meant)) if key.len() >= SHORTEST_COMPARED => Some(format!(
            "is not a known key and is passed on as it is; did you mean `{meant}`?"
        )),
        (true, _) => None,
    }
}

/// The place below `at` that `key` leads to.
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
    match known_keys::place(&any) {
        Some(_) => any,
        None => exact,
    }
}

/// The known key that `word` was probably meant to be.
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
    found: Comparison,
}

impl Search<'_> {
    fn visit(&mut self, node: &Node, at: &str) {
        match &node.content {
            Content::Map(entries) => {
                for entry in entries {
                    self.path.push(entry.key.clone());
                    self.judge(entry, at);
                    self.visit(&entry.value, &below(at, &entry.key));
                    self.path.pop();
                }
            }
            Content::List(items) => {
                let each = format!("{at}[]");
                if known_keys::place(at).is_some() && known_keys::place(&each).is_none() {
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

    fn judge(&mut self, entry: &Entry, at: &str) {
        if let Some(message) = complaint(at, &entry.key) {
            self.warn(entry, message);
        }
        if let Some(earlier) = entry.replaces {
            let message = format!(
                "stands twice; the one in line {} has no effect",
                earlier.line
            );
            self.warn(entry, message);
        }
    }

    fn warn(&mut self, entry: &Entry, message: String) {
        let warning = self.problem(entry.place, message);
        self.found.warnings.push(warning);
    }

    fn refuse_list(&mut self, node: &Node) {
        let problem = self.problem(node.place, "is a list, allowed: a map".to_owned());
        self.found.problems.push(problem);
    }

    fn problem(&self, place: Place, message: String) -> Problem {
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

/// Edits between two words, a swap of neighbours counting as one.
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
