//! How many tokens a text is for a model, as near as that can be known without its tokenizer.
//!
//! Counting exactly would mean to tokenize whole conversations before every call. Where it matters, the provider's own count of the
//! last answer is used, and this estimate only for what came after it.

use super::ModelInfo;
use crate::messages::{Message, TextSize};

/// Models whose tokenizers cut text alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TokenFamily {
    /// GPT and the o series.
    OpenAi,
    /// Claude.
    Claude,
    /// Gemini.
    Gemini,
    /// Models trained on much Chinese, such as Qwen, DeepSeek, GLM, Kimi: a letter is less than a token.
    Chinese,
    /// Any other: estimated on the large side.
    #[default]
    Other,
}

/// Words in the names of models, and the family they tell of.
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
    /// The family of a model, by its provider's name for it.
    pub fn of(info: &ModelInfo) -> Self {
        let name = info.model.to_lowercase();
        let known = NAMES
            .iter()
            .find(|(_, words)| words.iter().any(|word| name.contains(word)));
        known.map(|(family, _)| *family).unwrap_or_default()
    }

    /// Narrow letters per ten tokens, and tokens per ten wide letters.
    fn ratios(self) -> (u64, u64) {
        match self {
            Self::OpenAi => (40, 9),
            Self::Claude => (35, 12),
            Self::Gemini => (40, 8),
            Self::Chinese => (38, 7),
            Self::Other => (36, 12),
        }
    }

    /// The tokens of that much text, rounded up.
    pub fn tokens(self, size: TextSize) -> u64 {
        let (narrow, wide) = self.ratios();
        (size.narrow * 10).div_ceil(narrow) + (size.wide * wide).div_ceil(10)
    }

    /// The tokens of messages.
    pub fn tokens_of<'a>(self, messages: impl IntoIterator<Item = &'a Message>) -> u64 {
        self.tokens(messages.into_iter().map(Message::size).sum())
    }

    /// How many narrow letters a wide one weighs, rounded up.
    pub fn wide_letters(self) -> usize {
        let (narrow, wide) = self.ratios();
        usize::try_from((narrow * wide).div_ceil(100)).unwrap_or(usize::MAX)
    }

    /// How many narrow letters are so many tokens, rounded down.
    pub fn letters(self, tokens: u64) -> usize {
        usize::try_from(tokens.saturating_mul(self.ratios().0) / 10).unwrap_or(usize::MAX)
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
    fn a_family_is_known_by_the_providers_name() {
        assert_eq!(family("gpt-4o-mini"), TokenFamily::OpenAi);
        assert_eq!(family("anthropic/Claude-Sonnet"), TokenFamily::Claude);
        assert_eq!(family("Qwen2.5-72B"), TokenFamily::Chinese);
        assert_eq!(family("my-own"), TokenFamily::Other);
    }

    #[test]
    fn estimates_grow_with_text_and_weigh_wide_letters_more() {
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
                    narrow: family.letters(1_000) as u64,
                    wide: 0
                }) <= 1_000
            );
        }
    }
}
