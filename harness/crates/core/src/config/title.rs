//! `title`: titles of threads, generated after the first exchange.

use serde::Deserialize;

use super::check::Checker;

/// Titles of threads.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TitleConfig {
    /// Enables titles.
    pub enabled: bool,
    /// Maximum number of words, as stated in the prompt.
    pub max_words: u32,
    /// Maximum length of a title, in characters.
    pub max_chars: u32,
    /// Model that writes titles; null to truncate the first message instead.
    pub model_name: Option<String>,
    /// Prompt with `{max_words}`, `{user_msg}` and `{assistant_msg}`; null for the built-in one.
    pub prompt_template: Option<String>,
}

impl Default for TitleConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            max_words: 6,
            max_chars: 60,
            model_name: None,
            prompt_template: None,
        }
    }
}

impl TitleConfig {
    pub(super) fn check(&self, check: &mut Checker) {
        check.within("max_words", self.max_words, 1..=20);
        check.within("max_chars", self.max_chars, 10..=200);
    }
}
