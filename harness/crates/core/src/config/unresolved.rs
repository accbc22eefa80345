//! References to unset environment variables. They are errors only when the entry is used.

use serde::Deserialize;

/// `$VARIABLE` reference of a model or tool entry that had no value when the configuration was
/// read.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct UnresolvedVariable {
    /// Key inside the entry, dotted if nested.
    pub key: String,
    /// Name of the environment variable, without `$`.
    pub variable: String,
}

/// Use of an entry whose `$VARIABLE` has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{kind} `{entry}` needs the environment variable {variable} (key `{key}`), which is not set"
)]
pub struct MissingVariable {
    /// `model` or `tool`.
    pub kind: &'static str,
    /// Name of the entry.
    pub entry: String,
    /// Key that refers to the variable.
    pub key: String,
    /// Name of the variable.
    pub variable: String,
}

pub(super) fn require_resolved(
    kind: &'static str,
    entry: &str,
    unresolved: &[UnresolvedVariable],
) -> Result<(), MissingVariable> {
    match unresolved.first() {
        None => Ok(()),
        Some(first) => Err(MissingVariable {
            kind,
            entry: entry.to_owned(),
            key: first.key.clone(),
            variable: first.variable.clone(),
        }),
    }
}
