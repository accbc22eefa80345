//! Text size of a message, measured once.

use serde_json::Value;

use super::content::block_text;
use super::{Content, ToolCall};

/// Estimated size of an image, in narrow characters.
const IMAGE_CHARS: u64 = 4_000;
/// Size of a message without its text, in narrow characters.
const ENVELOPE_CHARS: u64 = 12;

/// Number of characters by width. The two widths differ in tokens per character.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TextSize {
    /// Characters of which several form one token.
    pub narrow: u64,
    /// Chinese, Japanese and Korean characters: about one token each.
    pub wide: u64,
}

impl TextSize {
    /// Measures a text.
    pub fn of(text: &str) -> Self {
        if text.is_ascii() {
            return Self {
                narrow: text.len() as u64,
                wide: 0,
            };
        }
        let (mut narrow, mut wide) = (0, 0);
        for ch in text.chars() {
            if is_wide(ch) { wide += 1 } else { narrow += 1 }
        }
        Self { narrow, wide }
    }

    /// Returns the sum of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            narrow: self.narrow + other.narrow,
            wide: self.wide + other.wide,
        }
    }

    /// Measures a message with this content and these calls, as a model reads it: text, calls,
    /// images and envelope.
    pub(super) fn of_message(content: &Content, calls: &[ToolCall]) -> Self {
        let content = match content {
            Content::Text(text) => Self::of(text),
            Content::Blocks(blocks) => blocks.iter().map(of_block).sum(),
        };
        let calls = calls.iter().map(|call| {
            let args = serde_json::to_string(&call.args).unwrap_or_default();
            Self::of(&call.name).and(Self::of(&args))
        });
        content.and(calls.sum()).and(Self {
            narrow: ENVELOPE_CHARS,
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
            narrow: IMAGE_CHARS,
            wide: 0,
        }
    } else {
        TextSize::of(&block.to_string())
    }
}

fn is_wide(ch: char) -> bool {
    matches!(u32::from(ch), 0x1100..=0x11FF | 0x2E80..=0x9FFF | 0xAC00..=0xD7AF | 0xF900..=0xFAFF | 0xFF00..=0xFFEF | 0x20000..=0x3FFFF)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::messages::Message;

    #[test]
    fn size_counts_chars_by_width_and_images_at_fixed_cost() {
        assert_eq!(TextSize::of("ab é"), TextSize { narrow: 4, wide: 0 });
        assert_eq!(TextSize::of("a你好カ한"), TextSize { narrow: 1, wide: 4 });
        let image = json!({"type": "image_url", "image_url": {"url": "x".repeat(1_000_000)}});
        let size = Message::human(Content::Blocks(vec![
            image,
            json!({"type": "text", "text": "abc"}),
        ]))
        .size();
        assert_eq!(size.narrow, IMAGE_CHARS + 3 + ENVELOPE_CHARS);
    }
}
