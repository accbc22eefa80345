//! Overrides of keys by the environment: `DEERFLOW_DATABASE__BACKEND=sqlite` sets
//! `database.backend`.
//!
//! The part after the prefix is the key in lower or upper case, `__` stands for the dot. Values
//! that look like a number, a boolean, `[lists]` or `{maps=1}` are parsed as such, all others are
//! text; `"quotes"` force text.

use std::collections::BTreeMap;

use crate::config::dotted;
use figment::providers::Serialized;
use figment::value::{Dict, Map, Value};
use figment::{Figment, Metadata, Profile, Provider};

use super::environment::Environment;
use super::error::{Origin, Warning};
use super::{known_keys, unknown_keys};

const PREFIX: &str = "DEERFLOW_";

/// Overridden keys, with the variable that sets each.
#[derive(Debug, Default)]
pub(super) struct Overrides {
    values: Figment,
    variables: BTreeMap<Vec<String>, String>,
    pub(super) warnings: Vec<Warning>,
}

impl Overrides {
    /// Reads every variable that names a known section; other variables with the prefix belong to
    /// other programs.
    pub(super) fn read(environment: &Environment) -> Self {
        let mut overrides = Self::default();
        for (rest, text) in environment.with_prefix(PREFIX) {
            let path: Vec<String> = rest
                .to_ascii_lowercase()
                .split("__")
                .map(str::to_owned)
                .collect();
            let is_section = known_keys::section("")
                .is_some_and(|section| section.keys().any(|known| known == path[0]));
            if is_section && path.iter().all(|segment| !segment.is_empty()) {
                overrides.set(path, format!("{PREFIX}{rest}"), text);
            }
        }
        overrides
    }

    /// Returns the variable that set `path` or a map that contains it.
    pub(super) fn variable_behind(&self, path: &[String]) -> Option<&str> {
        (1..=path.len())
            .rev()
            .find_map(|length| self.variables.get(&path[..length]))
            .map(String::as_str)
    }

    fn set(&mut self, path: Vec<String>, variable: String, text: &str) {
        let mut at = String::new();
        for (depth, key) in path.iter().enumerate() {
            if let Some(message) = unknown_keys::key_warning(&at, key) {
                self.warnings.push(Warning {
                    origin: Origin::Variable(variable.clone()),
                    key: dotted(&path[..=depth]),
                    message,
                });
                break;
            }
            at = unknown_keys::below(&at, key);
        }
        let value: Value = match text.parse() {
            Ok(value) => value,
            Err(never) => match never {},
        };
        let values = std::mem::take(&mut self.values);
        self.values = values.merge(Serialized::default(&path.join("."), value));
        self.variables.insert(path, variable);
    }
}

impl Provider for &Overrides {
    fn metadata(&self) -> Metadata {
        Metadata::named("environment")
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        self.values.data()
    }
}
