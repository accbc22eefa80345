//! Estimates the number of tokens of a text without the model's tokenizer.
//!
//! Chinese, Japanese and Korean characters are wide: each is about one token. All other characters
//! are narrow: several of them form a token.
//!
//! An exact count would have to tokenize the whole conversation before every call. Where precision
//! matters, callers use the provider's count of the last answer, and this estimate only for the
//! text after it.

use super::ModelInfo;
use deerflow_core::messages::{Message, TextSize};

/// Models whose tokenizers give similar counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TokenFamily {
    /// GPT and the o series.
    OpenAi,
    /// Models of Anthropic.
    Claude,
    /// Models of Google.
    Gemini,
    /// Models trained on much Chinese text, such as Qwen, DeepSeek, GLM, Kimi: less than one token
    /// per Chinese character.
    Chinese,
    /// Any other model. The estimate is conservative (high).
    #[default]
    Other,
}

/// Substrings of model names, and their family.
const NAMES: &[(TokenFamily, &[&str])] = &[
    (TokenFamily::Claude, &["claude"]),
    (TokenFamily::Gemini, &["gemini", "gemma"]),
    (
        TokenFamily::Chinese,
        &[
            "qwen", "qwq", "deepseek", "glm", "kimi", "moonshot", "doubao", "minimax", "mimo",
            "step-", "ernie", "hunyuan",
        ],
    ),
    (TokenFamily::OpenAi, &["gpt", "o1", "o3", "o4", "codex"]),
];

impl TokenFamily {
    /// Returns the family of a model by its provider's name for it.
    pub fn of(info: &ModelInfo) -> Self {
        let name = info.model.to_lowercase();
        let matching = NAMES
            .iter()
            .find(|(_, substrings)| substrings.iter().any(|word| name.contains(word)));
        matching.map(|(family, _)| *family).unwrap_or_default()
    }

    /// Returns the number of narrow characters per ten tokens, and the number of tokens per ten
    /// wide characters.
    fn ratios(self) -> (u64, u64) {
        match self {
            Self::OpenAi => (40, 9),
            Self::Claude => (35, 12),
            Self::Gemini => (40, 8),
            Self::Chinese => (38, 7),
            Self::Other => (36, 12),
        }
    }

    /// Returns the tokens of a text of this size, rounded up.
    pub fn tokens(self, size: TextSize) -> u64 {
        let (narrow, wide) = self.ratios();
        (size.narrow * 10).div_ceil(narrow) + (size.wide * wide).div_ceil(10)
    }

    /// Returns the tokens of messages.
    pub fn tokens_of<'a>(self, messages: impl IntoIterator<Item = &'a Message>) -> u64 {
        self.tokens(messages.into_iter().map(Message::size).sum())
    }

    /// Returns the number of narrow characters that use as many tokens as one wide character,
    /// rounded up.
    pub fn narrow_chars_per_wide(self) -> usize {
        let (narrow, wide) = self.ratios();
        usize::try_from((narrow * wide).div_ceil(100)).unwrap_or(usize::MAX)
    }

    #[doc(hidden)]
    #[deprecated(note = "use `narrow_chars_per_wide`")]
    pub fn wide_letters(self) -> usize {
        self.narrow_chars_per_wide()
    }

    /// Returns the number of narrow characters that fit into this number of tokens, rounded down.
    pub fn narrow_chars(self, tokens: u64) -> usize {
        usize::try_from(tokens.saturating_mul(self.ratios().0) / 10).unwrap_or(usize::MAX)
    }

    #[doc(hidden)]
    #[deprecated(note = "use `narrow_chars`")]
    pub fn letters(self, tokens: u64) -> usize {
        self.narrow_chars(tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family(model: &str) -> TokenFamily {
        TokenFamily::of(&ModelInfo {
            name: "m".to_owned(),
            model: model.to_owned(),
            provider: "openai".to_owned(),
            supports_vision: false,
        })
    }

    #[test]
    fn family_is_derived_from_provider_model_name() {
        assert_eq!(family("gpt-4o-mini"), TokenFamily::OpenAi);
        assert_eq!(family("anthropic/Claude-Sonnet"), TokenFamily::Claude);
        assert_eq!(family("Qwen2.5-72B"), TokenFamily::Chinese);
        assert_eq!(family("my-own"), TokenFamily::Other);
    }

    #[test]
    fn estimates_grow_and_weigh_wide_characters_more() {
        for family in [
            TokenFamily::OpenAi,
            TokenFamily::Claude,
            TokenFamily::Gemini,
            TokenFamily::Chinese,
            TokenFamily::Other,
        ] {
            let latin = family.tokens(TextSize::of(&"word ".repeat(100)));
            let chinese = family.tokens(TextSize::of(&"字".repeat(500)));
            assert!((100..=160).contains(&latin), "{family:?} {latin}");
            assert!(chinese > 2 * latin, "{family:?} {chinese}");
            assert!(
                family.tokens(TextSize {
                    narrow: family.narrow_chars(1_000) as u64,
                    wide: 0
                }) <= 1_000
            );
        }
    }
}
