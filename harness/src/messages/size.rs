//! How much there is to read in a message, measured once in its life.

use serde_json::Value;

use super::content::block_text;
use super::{Content, Message};

/// What an image is taken for, in narrow letters.
const IMAGE_LETTERS: u64 = 4_000;
/// What a message costs besides its text, in narrow letters.
const ENVELOPE_LETTERS: u64 = 12;

/// Letters of text in the two widths that tokenizers tell apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TextSize {
    /// Letters several of which make a token.
    pub narrow: u64,
    /// Chinese, Japanese and Korean letters: about one token each.
    pub wide: u64,
}

impl TextSize {
    /// The size of a text.
    pub fn of(text: &str) -> Self {
        if text.is_ascii() {
            return Self {
                narrow: text.len() as u64,
                wide: 0,
            };
        }
        let (mut narrow, mut wide) = (0, 0);
        for letter in text.chars() {
            if is_wide(letter) {
                wide += 1
            } else {
                narrow += 1
            }
        }
        Self { narrow, wide }
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            narrow: self.narrow + other.narrow,
            wide: self.wide + other.wide,
        }
    }

    /// The size of a message as a model gets it: text, calls, images, and what stands around them.
    pub(super) fn of_message(message: &Message) -> Self {
        let content = match &message.content {
            Content::Text(text) => Self::of(text),
            Content::Blocks(blocks) => blocks.iter().map(of_block).sum(),
        };
        let calls = message.tool_calls().iter().map(|call| {
            let args = serde_json::to_string(&call.args).unwrap_or_default();
            Self::of(&call.name).and(Self::of(&args))
        });
        content.and(calls.sum()).and(Self {
            narrow: ENVELOPE_LETTERS,
            wide: 0,
        })
    }
}

impl std::iter::Sum for TextSize {
    fn sum<I: Iterator<Item = Self>>(sizes: I) -> Self {
        sizes.fold(Self::default(), Self::and)
    }
}

fn of_block(block: &Value) -> TextSize {
    if let Some(text) = block_text(block) {
        return TextSize::of(text);
    }
    let is_image = block
        .get("type")
        .and_then(Value::as_str)
        .is_some_and(|kind| kind.contains("image"));
    if is_image {
        TextSize {
            narrow: IMAGE_LETTERS,
            wide: 0,
        }
    } else {
        TextSize::of(&block.to_string())
    }
}

fn is_wide(letter: char) -> bool {
    matches!(u32::from(letter), 0x1100..=0x11FF | 0x2E80..=0x9FFF | 0xAC00..=0xD7AF | 0xF900..=0xFAFF | 0xFF00..=0xFFEF | 0x20000..=0x3FFFF)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn letters_are_told_apart_by_width_and_images_do_not_count_by_their_bytes() {
        assert_eq!(TextSize::of("ab é"), TextSize { narrow: 4, wide: 0 });
        assert_eq!(TextSize::of("a你好カ한"), TextSize { narrow: 1, wide: 4 });
        let image = json!({"type": "image_url", "image_url": {"url": "x".repeat(1_000_000)}});
        let size = Message::human(Content::Blocks(vec![
            image,
            json!({"type": "text", "text": "abc"}),
        ]))
        .size();
        assert_eq!(size.narrow, IMAGE_LETTERS + 3 + ENVELOPE_LETTERS);
    }
}
