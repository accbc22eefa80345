//! References to environment variables that are not set, kept until somebody uses the entry that holds them.

use serde::Deserialize;

/// One `$VARIABLE` of a model or tool entry that had no value when the configuration was read.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct UnresolvedVariable {
    /// The key inside the entry, dotted when nested.
    pub key: String,
    /// The name of the environment variable, without `$`.
    pub variable: String,
}

/// Refusal to use an entry whose `$VARIABLE` has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{kind} `{entry}` needs the environment variable {variable} (key `{key}`), which is not set"
)]
pub struct MissingVariable {
    /// `model` or `tool`.
    pub kind: &'static str,
    /// The entry's name.
    pub entry: String,
    /// The key that refers to the variable.
    pub key: String,
    /// The variable's name.
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
