//! `$NAME` values: replaced by the environment, or remembered until the entry that needs them is used.

use std::path::Path;

use crate::config::dotted;

use super::document::{Content, Entry, Node, Place};
use super::environment::Environment;
use super::error::{Origin, Problem, Warning};

/// Lists whose entries may stay incomplete: nobody may ever use them.
const LAZY_SECTIONS: [&str; 2] = ["models", "tools"];
/// Keys without which an entry cannot be named; they keep their `$NAME` as text.
const IDENTITY_KEYS: [&str; 4] = ["name", "use", "model", "group"];
/// Where the typed entries look for what is missing.
const UNRESOLVED: &str = "__unresolved";

/// What could not be replaced.
#[derive(Debug, Default)]
pub(super) struct Unset {
    /// In entries that may stay incomplete.
    pub(super) warnings: Vec<Warning>,
    /// Anywhere else.
    pub(super) problems: Vec<Problem>,
}

struct Missing {
    path: Vec<String>,
    place: Place,
    variable: String,
}

/// Replaces every text that starts with `$`, in maps and lists at any depth; the rest of the text is the name.
pub(super) fn resolve(root: &mut Node, file: &Path, environment: &Environment) -> Unset {
    forget_foreign_marks(root);
    let mut missing = Vec::new();
    substitute(root, &mut Vec::new(), environment, &mut missing);

    let mut unset = Unset::default();
    for missing in missing {
        let origin = Origin::File {
            path: file.to_owned(),
            place: missing.place,
        };
        let key = dotted(&missing.path);
        if environment.is_unreadable(&missing.variable) {
            let message = format!(
                "refers to the environment variable {}, whose value is not UTF-8",
                missing.variable
            );
            unset.problems.push(Problem {
                origin,
                key,
                message,
            });
        } else if mark(root, &missing) {
            unset.warnings.push(Warning {
                origin,
                key,
                message: format!("refers to the environment variable {}, which is not set; using this entry will fail", missing.variable),
            });
        } else {
            unset.problems.push(Problem {
                origin,
                key,
                message: format!(
                    "refers to the environment variable {}, which is not set",
                    missing.variable
                ),
            });
        }
    }
    unset
}

fn substitute(
    node: &mut Node,
    path: &mut Vec<String>,
    environment: &Environment,
    missing: &mut Vec<Missing>,
) {
    match &mut node.content {
        Content::Text { text, variable } => {
            // A dollar alone names nothing: it is the whole document to `store.index.fields`.
            let Some(name) = text.strip_prefix('$').filter(|name| !name.is_empty()) else {
                return;
            };
            match environment.get(name) {
                Some(value) => {
                    *variable = Some(name.to_owned());
                    *text = value.to_owned();
                }
                None => missing.push(Missing {
                    path: path.clone(),
                    place: node.place,
                    variable: name.to_owned(),
                }),
            }
        }
        Content::List(items) => {
            for (position, item) in items.iter_mut().enumerate() {
                path.push(position.to_string());
                substitute(item, path, environment, missing);
                path.pop();
            }
        }
        Content::Map(entries) => {
            for entry in entries {
                path.push(entry.key.clone());
                substitute(&mut entry.value, path, environment, missing);
                path.pop();
            }
        }
        Content::Null | Content::Bool(_) | Content::Number(_) => {}
    }
}

/// Notes the missing variable in the model or tool entry that holds it; false when it is not in one.
fn mark(root: &mut Node, missing: &Missing) -> bool {
    let [section, position, key @ ..] = missing.path.as_slice() else {
        return false;
    };
    let (Some(first), true) = (key.first(), LAZY_SECTIONS.contains(&section.as_str())) else {
        return false;
    };
    let Some(entries) = lazy_entry(root, section, position) else {
        return false;
    };
    if key.len() > 1 || !IDENTITY_KEYS.contains(&first.as_str()) {
        blank(entries, key);
    }
    let note = Node {
        place: missing.place,
        content: Content::Map(vec![
            text_entry("key", &dotted(key), missing.place),
            text_entry("variable", &missing.variable, missing.place),
        ]),
    };
    match entries.iter_mut().find(|entry| entry.key == UNRESOLVED) {
        Some(Entry {
            value:
                Node {
                    content: Content::List(notes),
                    ..
                },
            ..
        }) => notes.push(note),
        _ => entries.push(Entry {
            key: UNRESOLVED.to_owned(),
            place: missing.place,
            value: Node {
                place: missing.place,
                content: Content::List(vec![note]),
            },
            replaces: None,
        }),
    }
    true
}

fn lazy_entry<'a>(root: &'a mut Node, section: &str, position: &str) -> Option<&'a mut Vec<Entry>> {
    let Content::Map(sections) = &mut root.content else {
        return None;
    };
    let section = sections.iter_mut().find(|entry| entry.key == section)?;
    let Content::List(items) = &mut section.value.content else {
        return None;
    };
    match &mut items.get_mut(position.parse::<usize>().ok()?)?.content {
        Content::Map(entries) => Some(entries),
        _ => None,
    }
}

/// Takes an unset value out: a key disappears, a list element becomes null.
fn blank(entries: &mut Vec<Entry>, path: &[String]) {
    let [first, rest @ ..] = path else {
        return;
    };
    if rest.is_empty() {
        entries.retain(|entry| entry.key != *first);
    } else if let Some(entry) = entries.iter_mut().find(|entry| entry.key == *first) {
        blank_in(&mut entry.value, rest);
    }
}

fn blank_in(node: &mut Node, path: &[String]) {
    match &mut node.content {
        Content::Map(entries) => blank(entries, path),
        Content::List(items) => {
            let [first, rest @ ..] = path else {
                return;
            };
            let Some(item) = first.parse().ok().and_then(|at: usize| items.get_mut(at)) else {
                return;
            };
            if rest.is_empty() {
                item.content = Content::Null;
            } else {
                blank_in(item, rest);
            }
        }
        _ => {}
    }
}

fn forget_foreign_marks(root: &mut Node) {
    for section in LAZY_SECTIONS {
        let mut position = 0;
        let count = match &root.follow(&[section]).0.content {
            Content::List(items) => items.len(),
            _ => 0,
        };
        while position < count {
            if let Some(entries) = lazy_entry(root, section, &position.to_string()) {
                entries.retain(|entry| entry.key != UNRESOLVED);
            }
            position += 1;
        }
    }
}

fn text_entry(key: &str, text: &str, place: Place) -> Entry {
    Entry {
        key: key.to_owned(),
        place,
        value: Node {
            place,
            content: Content::text(text),
        },
        replaces: None,
    }
}

#[cfg(test)]
#[path = "variables_tests.rs"]
mod tests;
