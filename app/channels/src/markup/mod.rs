//! Markdown in the form of each platform, split into parts.

mod builder;
mod cost;
mod ending;
mod escape;
mod fence;
mod layout;
mod pack;
mod piece;
mod render;
mod row;
mod table;
mod tree;

#[cfg(test)]
#[path = "property_tests.rs"]
mod property_tests;
#[cfg(test)]
#[path = "markup_tests.rs"]
mod tests;

pub use crate::platform::{Dialect, Part};
use crate::platform::{LengthUnit, TextLimit, floor_boundary};
pub use ending::ending;

/// Mark of a preview that was cut.
const ELLIPSIS: &str = "\n…";
/// Smallest limit for which a text is split again.
const MIN_UNITS: usize = 16;
/// Maximum number of source bytes that a preview reads, in addition to eight per unit of its limit.
const PREVIEW_BYTES: usize = 64 * 1024;

/// Renders Markdown and splits it at blocks into parts within the limit. Limits below 40 units are
/// exceeded where one character with its markup is longer.
pub fn parts(markdown: &str, dialect: Dialect, limit: TextLimit) -> Vec<Part> {
    first_parts(markdown, dialect, limit, usize::MAX)
}

/// Renders the beginning of Markdown as one text within the limit, for live updates. A cut is
/// marked with an ellipsis. Returns an empty text if there is nothing to show.
pub fn preview(markdown: &str, dialect: Dialect, limit: TextLimit) -> String {
    let most = limit.max.saturating_mul(8).saturating_add(PREVIEW_BYTES);
    let source = &markdown[..floor_boundary(markdown, most)];
    let mut whole = first_parts(source, dialect, limit, 2);
    if whole.len() < 2 && source.len() == markdown.len() {
        return whole.pop().map_or_else(String::new, |part| part.markup);
    }
    let shorter = TextLimit {
        max: limit.max.saturating_sub(limit.unit.length(ELLIPSIS)),
        ..limit
    };
    first_parts(source, dialect, shorter, 1)
        .pop()
        .map_or_else(String::new, |part| part.markup + ELLIPSIS)
}

/// Renders at most `count` parts. Marks that separate characters are inserted after a text is split,
/// so a part may exceed the limit: then all are split again for a limit that is smaller by the excess.
fn first_parts(markdown: &str, dialect: Dialect, limit: TextLimit, count: usize) -> Vec<Part> {
    let document = builder::parse(markdown);
    let mut form = cost::Form {
        dialect,
        unit: limit.unit,
        max: limit.max,
    };
    loop {
        let layout = layout::layout(&document, form);
        let parts: Vec<Part> = pack::pack(&layout, form, count)
            .iter()
            .map(|pieces| render::render(pieces, &layout.fences, form))
            .filter(|part| part.plain.chars().any(is_visible))
            .collect();
        let longest = parts.iter().map(|part| {
            let markup = counted_length(&part.markup, dialect, limit.unit);
            markup.max(limit.unit.length(&part.plain))
        });
        let excess = longest.max().unwrap_or(0).saturating_sub(limit.max);
        if excess == 0 || form.max <= excess + MIN_UNITS {
            return parts;
        }
        form.max -= excess;
    }
}

/// Returns whether a character shows something. Platforms refuse texts without any.
fn is_visible(character: char) -> bool {
    !character.is_whitespace()
        && !character.is_control()
        && !matches!(character, '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

/// Returns the length of a text as the limit of a dialect counts it: without tags and with entities
/// parsed for Telegram, as it is for the others.
pub fn counted_length(markup: &str, dialect: Dialect, unit: LengthUnit) -> usize {
    match dialect {
        Dialect::TelegramHtml => unit.length(&escape::visible_html(markup)),
        _ => unit.length(markup),
    }
}
