//! `title`: naming a conversation after its first exchange.

use serde::Deserialize;

use super::check::Checker;

/// Titles of threads.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TitleConfig {
    /// Whether threads get titles.
    pub enabled: bool,
    /// Most words the model is asked for.
    pub max_words: u32,
    /// Most characters kept.
    pub max_chars: u32,
    /// The model that writes titles; null cuts the first message instead.
    pub model_name: Option<String>,
    /// The prompt, with `{max_words}`, `{user_msg}` and `{assistant_msg}`; null uses the built-in one.
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
