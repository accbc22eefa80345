//! Resolves `$NAME` values from the environment. In model and tool entries a missing variable is an
//! error only when the entry is used.

use std::path::Path;

use crate::config::dotted;

use super::document::{Content, Entry, Node};
use super::environment::Environment;
use super::error::{Origin, Problem, Warning};
use super::file_location::FileLocation;

/// Lists whose entries may be incomplete, since an entry may never be used.
const LAZY_SECTIONS: [&str; 2] = ["models", "tools"];
/// Keys that identify an entry; they keep an unresolved `$NAME` as text.
const IDENTITY_KEYS: [&str; 4] = ["name", "use", "model", "group"];
/// Key under which typed entries find their unresolved variables.
const UNRESOLVED: &str = "__unresolved";

/// References that could not be resolved.
#[derive(Debug, Default)]
pub(super) struct UnresolvedReferences {
    /// References in entries that may be incomplete.
    pub(super) warnings: Vec<Warning>,
    /// All other references.
    pub(super) problems: Vec<Problem>,
}

struct Missing {
    path: Vec<String>,
    place: FileLocation,
    variable: String,
}

/// Resolves every text that starts with `$`, in maps and lists at any depth; the rest of the text
/// is the variable name.
pub(super) fn resolve(
    root: &mut Node,
    file: &Path,
    environment: &Environment,
) -> UnresolvedReferences {
    remove_reserved_keys(root);
    let mut missing = Vec::new();
    substitute(root, &mut Vec::new(), environment, &mut missing);

    let mut unset = UnresolvedReferences::default();
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
        } else if record_in_entry(root, &missing) {
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
            // A single `$` is not a reference: in `store.index.fields` it stands for the whole
            // document.
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

/// Records the missing variable in its model or tool entry; `false` if it is not in one.
fn record_in_entry(root: &mut Node, missing: &Missing) -> bool {
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
        remove_value(entries, key);
    }
    let record = Node {
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
        }) => notes.push(record),
        _ => entries.push(Entry {
            key: UNRESOLVED.to_owned(),
            place: missing.place,
            value: Node {
                place: missing.place,
                content: Content::List(vec![record]),
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

/// Removes an unresolved value: a key is deleted, a list element becomes null.
fn remove_value(entries: &mut Vec<Entry>, path: &[String]) {
    let [first, rest @ ..] = path else {
        return;
    };
    if rest.is_empty() {
        entries.retain(|entry| entry.key != *first);
    } else if let Some(entry) = entries.iter_mut().find(|entry| entry.key == *first) {
        remove_value_in(&mut entry.value, rest);
    }
}

fn remove_value_in(node: &mut Node, path: &[String]) {
    match &mut node.content {
        Content::Map(entries) => remove_value(entries, path),
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
                remove_value_in(item, rest);
            }
        }
        _ => {}
    }
}

fn remove_reserved_keys(root: &mut Node) {
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

fn text_entry(key: &str, text: &str, place: FileLocation) -> Entry {
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
