//! Checks of types: names that a crate defines too often, state structs with too many fields, and
//! trait implementations in the wiring.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::exceptions::Exceptions;
use crate::report::Violation;
use crate::source::Crate;
use crate::workspace::Workspace;

/// Types that a crate may define under one name.
const MAX_SAME_NAME: usize = 2;

/// Fields of a state struct.
const MAX_STATE_FIELDS: usize = 12;

/// Ends of the names of state structs.
const STATE_NAMES: [&str; 5] = ["State", "Inner", "Shared", "Buffer", "Machine"];

/// Keywords that define a type.
const TYPES: [&str; 5] = ["struct", "enum", "union", "trait", "type"];

/// Folder that constructs what other folders implement.
pub(super) const WIRING: &str = "app/server/src/wiring";

/// One `key reason` per line; keys are `crate::Name:count` for a name, `file::Name:fields` for a
/// state struct, and `file:count` for trait implementations.
const LIST: &str = "xtask/src/tidy/types.txt";

pub(super) fn check(workspace: &Workspace, crates: &[Crate]) -> Result<Vec<Violation>> {
    let mut exceptions = Exceptions::load(workspace, LIST)?;
    let mut violations = check_all(crates, &mut exceptions);
    violations.extend(exceptions.unneeded());
    Ok(violations)
}

fn check_all(crates: &[Crate], exceptions: &mut Exceptions) -> Vec<Violation> {
    let mut violations = Vec::new();
    for crate_ in crates {
        names(crate_, exceptions, &mut violations);
        state_fields(crate_, exceptions, &mut violations);
        wiring(crate_, exceptions, &mut violations);
    }
    violations
}

fn names(crate_: &Crate, exceptions: &mut Exceptions, violations: &mut Vec<Violation>) {
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for module in &crate_.modules {
        for definition in &module.facts.definitions {
            if TYPES.contains(&definition.keyword.as_str()) {
                let location = format!("{}:{}", crate_.path_of(module), definition.line);
                places.entry(&definition.name).or_default().push(location);
            }
        }
    }
    for (name, places) in places {
        let count = places.len();
        if count > MAX_SAME_NAME && !exceptions.allow(&format!("{}::{name}:{count}", crate_.name)) {
            violations.push(Violation::new(
                &places[0],
                format!(
                    "{count} types named `{name}` in {}, more than {MAX_SAME_NAME}: name each after what it holds \
                     ({})",
                    crate_.name,
                    places[1..].join(", ")
                ),
            ));
        }
    }
}

fn state_fields(crate_: &Crate, exceptions: &mut Exceptions, violations: &mut Vec<Violation>) {
    for module in &crate_.modules {
        let file = crate_.path_of(module);
        for definition in &module.facts.definitions {
            let (name, fields) = (&definition.name, definition.fields);
            let is_state = STATE_NAMES.iter().any(|end| name.ends_with(end));
            if is_state
                && fields > MAX_STATE_FIELDS
                && !exceptions.allow(&format!("{file}::{name}:{fields}"))
            {
                violations.push(Violation::at(
                    &file,
                    definition.line,
                    format!(
                        "state struct `{name}` has {fields} fields, more than {MAX_STATE_FIELDS}: group those that \
                         change together, or write its states as an enum"
                    ),
                ));
            }
        }
    }
}

fn wiring(crate_: &Crate, exceptions: &mut Exceptions, violations: &mut Vec<Violation>) {
    for module in &crate_.modules {
        let file = crate_.path_of(module);
        let impls = &module.facts.trait_impls;
        let Some(line) = impls.first().filter(|_| file.starts_with(WIRING)) else {
            continue;
        };
        if !exceptions.allow(&format!("{file}:{}", impls.len())) {
            violations.push(Violation::at(
                &file,
                *line,
                format!(
                    "{} trait implementations in the wiring: move each to the module or crate whose job it does, \
                     and construct it here",
                    impls.len()
                ),
            ));
        }
    }
}

#[cfg(test)]
#[path = "types_tests.rs"]
mod tests;
