//! Text forms of platforms.

use serde::{Deserialize, Serialize};

use super::MAX_TEXT_BYTES;

/// Text form of a platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Text without markup.
    Plain,
    /// HTML subset of Telegram's Bot API. Its limit counts the visible text only.
    TelegramHtml,
    /// Slack's mrkdwn, escaped.
    SlackMrkdwn,
    /// Markdown of Feishu's cards in the old schema: no headings, no tables.
    FeishuCard,
    /// Discord's Markdown: no tables.
    Discord,
    /// DingTalk's Markdown: no tables, no code fences.
    DingTalk,
    /// WeCom's Markdown.
    WeCom,
}

/// Text of one message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Text in the platform's dialect, within its limit.
    pub markup: String,
    /// The same text without markup, for a platform that refuses the markup. A word joiner (U+2060)
    /// separates the first two characters of what the platform would take for a mention.
    pub plain: String,
}

/// Returns the greatest character boundary that is not above an index.
pub(crate) fn floor_boundary(text: &str, index: usize) -> usize {
    let mut index = index.min(text.len());
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}

/// Cuts a received text to [`MAX_TEXT_BYTES`], and reports whether it was longer.
pub(crate) fn cut_text(mut text: String) -> (String, bool) {
    let is_longer = text.len() > MAX_TEXT_BYTES;
    text.truncate(floor_boundary(&text, MAX_TEXT_BYTES));
    (text, is_longer)
}
