//! Escapes and marks of each dialect.

use std::borrow::Cow;

use super::tree::Style;
use crate::platform::Dialect;

/// Invisible character that separates what a platform would read as one token.
pub(super) const JOINER: &str = "\u{2060}";
/// Part of a text that is a backtick followed by a separator.
const JOINED_TICK: &str = "`\u{2060}";
/// A less-than sign followed by a separator.
const JOINED_LESS: &str = "<\u{2060}";

/// Returns the longest replacement of an ASCII character in markup.
pub(super) fn longest(dialect: Dialect, code: bool, character: char) -> Option<&'static str> {
    let replacement = match (dialect, code, character) {
        (Dialect::TelegramHtml, false, '@') => "@\u{2060}",
        (Dialect::SlackMrkdwn, _, '&') => "&amp;",
        (Dialect::SlackMrkdwn, _, '<') => "&lt;",
        (Dialect::SlackMrkdwn, _, '>') => "&gt;",
        (Dialect::FeishuCard, false, '<') => "&#60;",
        (Dialect::FeishuCard, false, '&') => "&#38;",
        (Dialect::FeishuCard, false, '*') => "&#42;",
        (Dialect::FeishuCard, false, '_') => "&#95;",
        (Dialect::FeishuCard, false, '`') => "&#96;",
        (Dialect::FeishuCard, false, '~') => "&#126;",
        (Dialect::FeishuCard, false, '(') => "&#40;",
        (Dialect::Discord, false, '\\') => "\\\\",
        (Dialect::Discord, false, '*') => "\\*",
        (Dialect::Discord, false, '_') => "\\_",
        (Dialect::Discord, false, '~') => "\\~",
        (Dialect::Discord, false, '`') => "\\`",
        (Dialect::Discord, false, '|') => "\\|",
        (Dialect::Discord, false, '(') => "\\(",
        (Dialect::FeishuCard, true, '<') | (Dialect::WeCom, _, '<') => JOINED_LESS,
        (Dialect::Plain | Dialect::TelegramHtml, _, _) => return None,
        (_, _, '`') => JOINED_TICK,
        _ => return None,
    };
    Some(replacement)
}

/// Returns whether a separator may follow a character in the form without markup.
pub(super) fn joins_after(dialect: Dialect, character: char) -> bool {
    match dialect {
        Dialect::TelegramHtml => character == '@',
        Dialect::SlackMrkdwn | Dialect::FeishuCard | Dialect::WeCom => character == '<',
        Dialect::Plain | Dialect::Discord | Dialect::DingTalk => false,
    }
}

/// Returns the styles that a dialect shows.
pub(super) fn shown(dialect: Dialect, style: Style) -> Style {
    match dialect {
        Dialect::Plain => Style::NONE,
        Dialect::TelegramHtml if style.has(Style::CODE) => Style::CODE,
        Dialect::DingTalk if style.has(Style::CODE) => Style::BOLD,
        Dialect::DingTalk => style.without(Style::STRIKE),
        Dialect::WeCom => style.without(Style::STRIKE).without(Style::ITALIC),
        _ => style,
    }
}

/// Returns the marks before and after a text of one style.
pub(super) fn marks(dialect: Dialect, style: Style) -> (&'static str, &'static str) {
    let is_telegram = dialect == Dialect::TelegramHtml;
    let is_slack = dialect == Dialect::SlackMrkdwn;
    match style {
        Style::BOLD if is_telegram => ("<b>", "</b>"),
        Style::ITALIC if is_telegram => ("<i>", "</i>"),
        Style::STRIKE if is_telegram => ("<s>", "</s>"),
        _ if is_telegram => ("<code>", "</code>"),
        Style::BOLD if is_slack => ("*", "*"),
        Style::ITALIC if is_slack => ("_", "_"),
        Style::STRIKE if is_slack => ("~", "~"),
        Style::BOLD => ("**", "**"),
        Style::ITALIC => ("*", "*"),
        Style::STRIKE => ("~~", "~~"),
        _ => ("`", "`"),
    }
}

/// Returns whether an address may be a link.
pub(super) fn is_link(dialect: Dialect, address: &str) -> bool {
    if dialect == Dialect::Plain || address.chars().any(|c| c.is_control() || c == ' ') {
        return false;
    }
    let Some((scheme, rest)) = address.split_once(':') else {
        return false;
    };
    match scheme.to_ascii_lowercase().as_str() {
        "http" | "https" => rest.len() > 2 && rest.starts_with("//"),
        "mailto" => !rest.is_empty(),
        // An address of a user would be a mention.
        "tg" => {
            dialect == Dialect::TelegramHtml && !rest.to_ascii_lowercase().starts_with("//user")
        }
        _ => false,
    }
}

/// Returns the address of a link as it is written in markup.
pub(super) fn address(dialect: Dialect, address: &str) -> Cow<'_, str> {
    let encoded = |characters: &[(char, &str)]| {
        let mut text = String::with_capacity(address.len());
        for character in address.chars() {
            match characters.iter().find(|(from, _)| *from == character) {
                Some((_, to)) => text.push_str(to),
                None => text.push(character),
            }
        }
        Cow::Owned(text)
    };
    match dialect {
        Dialect::Plain => Cow::Borrowed(address),
        Dialect::TelegramHtml => encoded(&[
            ('&', "&amp;"),
            ('<', "&lt;"),
            ('>', "&gt;"),
            ('"', "&quot;"),
        ]),
        Dialect::SlackMrkdwn => {
            encoded(&[('&', "&amp;"), ('<', "%3C"), ('>', "%3E"), ('|', "%7C")])
        }
        _ => encoded(&[
            ('(', "%28"),
            (')', "%29"),
            ('<', "%3C"),
            ('>', "%3E"),
            ('\\', "%5C"),
        ]),
    }
}

/// Appends a text without markup.
pub(super) fn push_plain(out: &mut String, dialect: Dialect, text: &str) {
    let mut previous = None;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        out.push(character);
        if is_mention(dialect, previous, character, characters.peek().copied()) {
            out.push_str(JOINER);
        }
        previous = Some(character);
    }
}

/// Returns whether a platform could read a mention that begins with a character.
fn is_mention(dialect: Dialect, before: Option<char>, character: char, next: Option<char>) -> bool {
    // A text of another style may follow.
    let is_next = |wanted: fn(char) -> bool| next.is_none_or(wanted);
    match dialect {
        Dialect::TelegramHtml => {
            character == '@'
                && is_next(|next| next.is_ascii_alphanumeric() || next == '_')
                && before.is_none_or(|before| !before.is_alphanumeric())
        }
        Dialect::SlackMrkdwn => character == '<' && is_next(|next| matches!(next, '!' | '@' | '#')),
        Dialect::FeishuCard => character == '<' && is_next(|next| matches!(next, 'a' | 'A' | '/')),
        Dialect::WeCom => character == '<' && is_next(|next| next == '@'),
        Dialect::Plain | Dialect::Discord | Dialect::DingTalk => false,
    }
}

/// Appends a text with the escapes of a dialect.
pub(super) fn push_markup(out: &mut String, dialect: Dialect, text: &str, code: bool) {
    match dialect {
        Dialect::Plain => out.push_str(text),
        Dialect::Discord | Dialect::FeishuCard if !code => {
            for word in text.split_inclusive(char::is_whitespace) {
                let trimmed = word.trim_end();
                let is_token = trimmed.starts_with('<') && trimmed.ends_with('>');
                let keeps = word.contains("://") || (is_token && dialect == Dialect::Discord);
                push_word(out, dialect, word, code, keeps);
            }
        }
        _ => push_word(out, dialect, text, code, false),
    }
}

/// Appends a text; `keeps` is `true` for an address, in which only mentions are escaped.
fn push_word(out: &mut String, dialect: Dialect, text: &str, code: bool, keeps: bool) {
    let mut before = None;
    let mut ticks = 0;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let next = characters.peek().copied();
        let escape = match (dialect, character) {
            (Dialect::TelegramHtml | Dialect::SlackMrkdwn, '&') => Some("&amp;"),
            (Dialect::TelegramHtml | Dialect::SlackMrkdwn, '<') => Some("&lt;"),
            (Dialect::TelegramHtml | Dialect::SlackMrkdwn, '>') => Some("&gt;"),
            (Dialect::Discord, '\\' | '*' | '_' | '~' | '`' | '|') if !code && !keeps => {
                longest(dialect, code, character)
            }
            (Dialect::Discord | Dialect::FeishuCard, '(') if !code && before == Some(']') => {
                longest(dialect, code, character)
            }
            (Dialect::FeishuCard, '<') if !code => Some("&#60;"),
            (Dialect::FeishuCard, '&') if !code && starts_entity(next, keeps) => Some("&#38;"),
            (Dialect::FeishuCard, '*' | '~' | '`') if !code && !keeps => {
                longest(dialect, code, character)
            }
            (Dialect::FeishuCard, '_') if !code && !keeps && !is_inner(before, next) => {
                longest(dialect, code, character)
            }
            _ => None,
        };
        match escape {
            Some(escape) => out.push_str(escape),
            None => {
                // Three backticks would open or close a code block.
                ticks = if character == '`' { ticks + 1 } else { 0 };
                if ticks == 3 && !matches!(dialect, Dialect::Plain | Dialect::TelegramHtml) {
                    out.push_str(JOINER);
                    ticks = 1;
                }
                out.push(character);
                let is_code = code && dialect == Dialect::TelegramHtml;
                if !is_code && is_mention(dialect, before, character, next) {
                    out.push_str(JOINER);
                }
            }
        }
        before = Some(character);
    }
}

/// Returns whether an ampersand before a character could begin an entity. In an address only those
/// matter that make a tag.
fn starts_entity(next: Option<char>, in_address: bool) -> bool {
    match next {
        Some('#' | 'l' | 'L') => true,
        Some(next) => next.is_ascii_alphanumeric() && !in_address,
        None => false,
    }
}

/// Returns whether a character is within a word.
fn is_inner(before: Option<char>, next: Option<char>) -> bool {
    before.is_some_and(char::is_alphanumeric) && next.is_some_and(char::is_alphanumeric)
}

/// Appends what protects the beginning of a line from being read as a heading, quote or list.
/// Returns the number of bytes of the text that are thereby written.
pub(super) fn push_line_start(out: &mut String, dialect: Dialect, text: &str) -> usize {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let Some(mark) = text[digits..].chars().next() else {
        return 0;
    };
    let is_block = match digits {
        0 => matches!(mark, '#' | '>' | '-' | '+' | '='),
        1..=9 => matches!(mark, '.' | ')'),
        _ => false,
    };
    let is_other = match dialect {
        Dialect::DingTalk | Dialect::WeCom => digits == 0 && matches!(mark, '*' | '|'),
        _ => false,
    };
    if !is_block && !is_other {
        return 0;
    }
    match dialect {
        Dialect::Plain | Dialect::TelegramHtml => 0,
        Dialect::SlackMrkdwn => {
            if mark == '>' {
                out.push_str(JOINER);
            }
            0
        }
        Dialect::DingTalk | Dialect::WeCom => {
            out.push_str(JOINER);
            0
        }
        Dialect::Discord => {
            out.push_str(&text[..digits]);
            out.push('\\');
            out.push(mark);
            digits + mark.len_utf8()
        }
        Dialect::FeishuCard => {
            out.push_str(&text[..digits]);
            out.push_str(&format!("&#{};", u32::from(mark)));
            digits + mark.len_utf8()
        }
    }
}

/// Returns the text that Telegram shows for HTML of this module.
pub(super) fn visible_html(html: &str) -> String {
    let mut visible = String::with_capacity(html.len());
    let mut is_tag = false;
    for character in html.chars() {
        match character {
            '<' => is_tag = true,
            '>' if is_tag => is_tag = false,
            _ if is_tag => {}
            other => visible.push(other),
        }
    }
    visible
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&amp;", "&")
}
