//! Marks of code blocks, and separators of lines.

use super::cost::{Cost, Form};
use super::row::{Gap, Row};
use crate::platform::Dialect;

/// Returns the text between two lines.
pub(super) fn separator(gap: Gap, dialect: Dialect) -> &'static str {
    match gap {
        Gap::Blank => "\n\n",
        // Two spaces make a line end.
        Gap::Line if dialect == Dialect::DingTalk => "  \n",
        Gap::Line => "\n",
    }
}

/// Text of a blank line within a quote.
pub(super) const QUOTED_BLANK: &str = "\n> \n";

/// Returns the greatest cost of the text between two lines.
pub(super) fn separator_cost(gap: Gap, form: Form) -> Cost {
    let markup = match gap {
        Gap::Blank => QUOTED_BLANK,
        Gap::Line => separator(gap, form.dialect),
    };
    Cost {
        markup: form.length(markup),
        plain: form.length(separator(gap, Dialect::Plain)),
    }
}

/// Returns the beginning and the end of a code block.
pub(super) fn fence(language: &str, dialect: Dialect) -> (String, &'static str) {
    match dialect {
        Dialect::TelegramHtml if language.is_empty() => ("<pre>".to_owned(), "</pre>"),
        Dialect::TelegramHtml => (
            format!("<pre><code class=\"language-{language}\">"),
            "</code></pre>",
        ),
        Dialect::SlackMrkdwn => ("```\n".to_owned(), "\n```"),
        _ => (format!("```{language}\n"), "\n```"),
    }
}

/// Returns the cost of the marks around the code block of a line.
pub(super) fn fence_cost(row: &Row, fences: &[String], form: Form) -> Cost {
    match row.fence {
        Some(number) if form.dialect != Dialect::TelegramHtml => {
            let language = fences.get(number).map_or("", String::as_str);
            let (begin, end) = fence(language, form.dialect);
            Cost {
                markup: form.length(&begin) + form.length(end),
                plain: 0,
            }
        }
        _ => Cost::default(),
    }
}
