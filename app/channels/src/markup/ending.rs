//! The end of a growing text, rendered for live updates.

use super::{Dialect, Part, parts};
use crate::platform::{LengthUnit, TextLimit};

/// Mark in place of the beginning.
const ELLIPSIS: &str = "…\n";

/// Renders the end of Markdown as one text within the limit; an ellipsis replaces what precedes it.
/// Only source of the limit's length is rendered. A code block that is open at the end is closed,
/// and one in whose middle the end begins is opened. Returns `None` if there is nothing to show.
pub fn ending(markdown: &str, dialect: Dialect, limit: TextLimit) -> Option<Part> {
    let text = markdown.trim_end();
    let start = tail_start(text, limit.unit, limit.max);
    if start == 0 {
        let mut whole = parts(text, dialect, limit);
        if whole.len() < 2 {
            return whole.pop();
        }
    }
    let shorter = TextLimit {
        max: limit.max.saturating_sub(limit.unit.length(ELLIPSIS)),
        ..limit
    };
    let start = line_start(text, tail_start(text, limit.unit, shorter.max));
    let (before, tail) = text.split_at(start);
    let source = match open_fence(before) {
        Some(fence) => format!("{fence}\n{tail}"),
        None => tail.to_owned(),
    };
    let last = parts(&source, dialect, shorter).pop()?;
    Some(Part {
        markup: format!("{ELLIPSIS}{}", last.markup),
        plain: format!("{ELLIPSIS}{}", last.plain),
    })
}

/// Returns the beginning of the longest end of a text within a number of units.
fn tail_start(text: &str, unit: LengthUnit, max: usize) -> usize {
    let mut units = 0;
    let mut buffer = [0; 4];
    let mut characters = text.char_indices().rev();
    let first = characters.find(|(_, character)| {
        units += unit.length(character.encode_utf8(&mut buffer));
        units > max
    });
    first.map_or(0, |(at, character)| at + character.len_utf8())
}

/// Returns the beginning of the next line if that shortens the end little, so that it begins with a
/// whole line.
fn line_start(text: &str, start: usize) -> usize {
    let tail = &text[start..];
    match tail.find('\n') {
        Some(at) if start > 0 && at < tail.len() / 4 => start + at + 1,
        _ => start,
    }
}

/// Returns the line that begins the code block in which a text ends.
fn open_fence(text: &str) -> Option<&str> {
    let mut open: Option<&str> = None;
    for line in text.lines() {
        let line = line.trim_start_matches([' ', '\t', '>']);
        let Some(mark) = fence_mark(line) else {
            continue;
        };
        match open.and_then(fence_mark) {
            None => open = Some(line),
            Some(begin) if mark.starts_with(begin) && line[mark.len()..].trim().is_empty() => {
                open = None;
            }
            Some(_) => {}
        }
    }
    open
}

/// Returns the characters of a line that begin or end a code block.
fn fence_mark(line: &str) -> Option<&str> {
    let character = line.chars().next().filter(|first| "`~".contains(*first))?;
    let length = line.len() - line.trim_start_matches(character).len();
    let is_inline = character == '`' && line[length..].contains('`');
    (length >= 3 && !is_inline).then(|| &line[..length])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(markdown: &str, max: usize) -> String {
        let limit = TextLimit {
            unit: LengthUnit::Utf16,
            max,
        };
        let part = ending(markdown, Dialect::TelegramHtml, limit);
        part.map_or_else(String::new, |part| part.markup)
    }

    #[test]
    fn open_code_block_is_closed() {
        assert_eq!(html("**Yes**:\n\n```", 99), "<b>Yes</b>:");
        let code = "<b>Yes</b>:\n\n<pre><code class=\"language-rust\">let a</code></pre>";
        assert_eq!(html("**Yes**:\n\n```rust\nlet a", 99), code);
        assert_eq!(html(" \n", 99), "");
    }

    #[test]
    fn end_within_a_code_block_opens_it() {
        let lines: String = (0..50).map(|n| format!("line {n}\n")).collect();
        let text = format!("Intro\n\n~~~~ sh\n{lines}");
        let shown = html(&text, 40);
        assert!(
            shown.starts_with("…\n<pre><code class=\"language-sh\">line 4"),
            "{shown}"
        );
        assert!(shown.ends_with("line 49</code></pre>"), "{shown}");
        let after = html(&format!("{text}~~~~\n\n{}", "word ".repeat(50)), 60);
        assert!(!after.contains("<pre>"), "{after}");
    }

    #[test]
    fn long_text_keeps_its_end_within_the_limit() {
        let unit = LengthUnit::Utf16;
        for text in ["😀", "a😀", "x", "*a* b\n\n", "| a | b |\n", "`<&>` "] {
            for times in [1_000, 5_000] {
                let text = text.repeat(times) + "end";
                let limit = TextLimit { unit, max: 4_096 };
                let part = ending(&text, Dialect::TelegramHtml, limit).unwrap();
                let visible =
                    crate::markup::counted_length(&part.markup, Dialect::TelegramHtml, unit);
                assert!(visible <= 4_096 && unit.length(&part.plain) <= 4_096);
                assert!(part.plain.ends_with("end"), "{}", part.plain);
                assert!(unit.length(&text) <= 4_096 || part.plain.starts_with('…'));
            }
        }
    }
}
