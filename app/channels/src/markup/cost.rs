//! Upper bounds of the length of rendered text.
//!
//! The cost of a text is the sum of the costs of its characters and marks, so that a part is filled
//! in linear time. Rendered text is never longer than its cost.

use std::ops::{Add, AddAssign};

use super::escape::{self, JOINER};
use super::tree::{Style, shows_address};
use crate::platform::{Dialect, LengthUnit};

/// Length of a text in both forms of a [`Part`](crate::platform::Part).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Cost {
    /// Length with markup.
    pub(super) markup: usize,
    /// Length without markup.
    pub(super) plain: usize,
}

impl Cost {
    /// Returns the same length for both forms.
    pub(super) fn both(length: usize) -> Self {
        Self {
            markup: length,
            plain: length,
        }
    }

    /// Returns whether both forms are within a limit.
    pub(super) fn fits(self, max: usize) -> bool {
        self.markup <= max && self.plain <= max
    }

    /// Returns the greater length.
    pub(super) fn greatest(self) -> usize {
        self.markup.max(self.plain)
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            markup: self.markup + other.markup,
            plain: self.plain + other.plain,
        }
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// Place of a text, which determines what must be escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Context {
    /// Running text.
    Text,
    /// Code within a line.
    Code,
    /// Line of a code block.
    Literal,
}

/// Dialect with its limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    /// Dialect.
    pub(super) dialect: Dialect,
    /// Unit of the limit.
    pub(super) unit: LengthUnit,
    /// Maximum length.
    pub(super) max: usize,
}

impl Form {
    /// Returns the cost of a character.
    pub(super) fn character(self, character: char, context: Context) -> Cost {
        if character == ' ' && self.dialect == Dialect::DingTalk && context == Context::Literal {
            // Indentation is written as no-break spaces.
            return Cost {
                markup: self.unit.length("\u{a0}"),
                plain: 1,
            };
        }
        let base = if character.is_ascii_alphanumeric() || character == ' ' {
            1
        } else {
            self.unit.length(character.encode_utf8(&mut [0; 4]))
        };
        if !character.is_ascii() || character.is_ascii_alphanumeric() {
            return Cost::both(base);
        }
        let replaced = |code| {
            escape::longest(self.dialect, code, character)
                .map_or(base, |text| self.unit.length(text))
        };
        let markup = match context {
            Context::Text => replaced(false),
            Context::Literal => replaced(true),
            // A part of it may have to be rendered as text.
            Context::Code => replaced(false).max(replaced(true)),
        };
        let plain = if escape::joins_after(self.dialect, character) {
            base + self.unit.length(JOINER)
        } else {
            base
        };
        Cost { markup, plain }
    }

    /// Returns the cost of a text.
    pub(super) fn text(self, text: &str, context: Context) -> Cost {
        text.chars().fold(Cost::default(), |sum, character| {
            sum + self.character(character, context)
        })
    }

    /// Returns the cost of the marks around a run.
    pub(super) fn marks(self, style: Style) -> Cost {
        if self.dialect == Dialect::TelegramHtml {
            return Cost::default();
        }
        let mut markup = 0;
        for bit in Style::ORDER {
            if escape::shown(self.dialect, style).has(bit) {
                let (before, after) = escape::marks(self.dialect, bit);
                markup += self.unit.length(before) + self.unit.length(after);
            }
        }
        if style.has(Style::CODE) {
            // Longer marks around code that contains a mark.
            markup += 4;
        }
        if markup > 0 && self.dialect == Dialect::SlackMrkdwn {
            // Separators between the marks and adjacent letters.
            markup += 2 * self.unit.length("\u{200b}");
        }
        Cost { markup, plain: 0 }
    }

    /// Returns the cost of a link without its label.
    pub(super) fn link(self, label: &str, address: &str) -> Cost {
        let length = self
            .text(address, Context::Text)
            .plain
            .max(self.unit.length(&escape::address(self.dialect, address)));
        Cost {
            markup: match self.dialect {
                Dialect::TelegramHtml => 0,
                _ => length + 4,
            },
            plain: if shows_address(label, address) {
                0
            } else {
                length + 3
            },
        }
    }

    /// Returns the cost of what protects the first character of a line.
    pub(super) fn line_start(self) -> Cost {
        let markup = match self.dialect {
            Dialect::Plain | Dialect::TelegramHtml => 0,
            Dialect::Discord => self.unit.length("\\"),
            Dialect::FeishuCard => 4,
            Dialect::SlackMrkdwn | Dialect::DingTalk | Dialect::WeCom => self.unit.length(JOINER),
        };
        Cost { markup, plain: 0 }
    }

    /// Returns the length of a text without escapes.
    pub(super) fn length(self, text: &str) -> usize {
        self.unit.length(text)
    }
}
