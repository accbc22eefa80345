//! `suggestions`: follow-up questions that are offered after an answer.

use serde::Deserialize;

use super::check::Checker;

/// Follow-up questions.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SuggestionsConfig {
    /// Enables suggestions.
    pub enabled: bool,
    /// Maximum number of suggestions.
    pub max_suggestions: u32,
}

impl Default for SuggestionsConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            max_suggestions: 3,
        }
    }
}

impl SuggestionsConfig {
    pub(super) fn check(&self, check: &mut Checker) {
        check.within("max_suggestions", self.max_suggestions, 1..=5);
    }
}
