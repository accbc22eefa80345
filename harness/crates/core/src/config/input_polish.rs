//! `input_polish`: rewriting of drafts before they are sent.

use serde::Deserialize;

use super::check::Checker;

/// Rewriting of drafts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct InputPolishConfig {
    /// Enables the rewriting.
    pub enabled: bool,
    /// Maximum length of a draft, in characters.
    pub max_chars: u32,
    /// Model for rewriting; null for the first configured one.
    pub model_name: Option<String>,
}

impl Default for InputPolishConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            max_chars: 4000,
            model_name: None,
        }
    }
}

impl InputPolishConfig {
    pub(super) fn check(&self, check: &mut Checker) {
        check.within("max_chars", self.max_chars, 1..=100_000);
    }
}
