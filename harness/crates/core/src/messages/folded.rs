//! Normalised texts for matching: invisible characters are removed, and look-alike characters are
//! mapped to plain ones.

use std::borrow::Cow;
use std::ops::Range;

use unicode_normalization::char::decompose_compatible;

/// A normalised text, with the origin of each of its bytes in the raw text.
pub(super) struct Folded<'a> {
    raw: &'a str,
    read: Cow<'a, str>,
    /// Origin of each normalised byte; empty if the text is unchanged.
    origins: Vec<usize>,
}

impl<'a> Folded<'a> {
    pub(super) fn of(raw: &'a str) -> Self {
        if raw
            .bytes()
            .all(|byte| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~'))
        {
            return Self {
                raw,
                read: Cow::Borrowed(raw),
                origins: Vec::new(),
            };
        }
        let mut read = String::with_capacity(raw.len());
        let mut origins = Vec::with_capacity(raw.len());
        for (at, ch) in raw.char_indices().filter(|(_, ch)| !is_invisible(*ch)) {
            decompose_compatible(ch, |plain| {
                read.push(plain);
                origins.resize(read.len(), at);
            });
        }
        Self {
            raw,
            read: Cow::Owned(read),
            origins,
        }
    }

    /// Returns the normalised text.
    pub(super) fn read(&self) -> &str {
        &self.read
    }

    /// Maps a non-empty range of the normalised text to the raw text.
    fn origin(&self, part: &Range<usize>) -> Range<usize> {
        let (Some(&start), Some(&last)) = (
            self.origins.get(part.start),
            self.origins.get(part.end.saturating_sub(1)),
        ) else {
            return part.clone();
        };
        start..last + self.raw[last..].chars().next().map_or(0, char::len_utf8)
    }

    /// Returns the raw text with some ranges of the normalised text replaced, which do not overlap;
    /// the rest is unchanged.
    pub(super) fn replaced(&self, mut parts: Vec<(Range<usize>, &str)>) -> Cow<'a, str> {
        if parts.is_empty() {
            return Cow::Borrowed(self.raw);
        }
        parts.sort_unstable_by_key(|(part, _)| part.start);
        let mut text = String::with_capacity(self.raw.len() + 8 * parts.len());
        let mut copied = 0;
        for (part, new) in parts {
            let origin = self.origin(&part);
            text.push_str(self.raw.get(copied..origin.start).unwrap_or_default());
            text.push_str(new);
            copied = copied.max(origin.end);
        }
        text.push_str(&self.raw[copied..]);
        Cow::Owned(text)
    }
}

/// Reports whether a character is invisible, a format character, or a control character other than
/// a line break.
fn is_invisible(ch: char) -> bool {
    match ch {
        '\t' | '\n' | '\r' => false,
        ch if ch.is_control() => true,
        '\u{ad}'
        | '\u{34f}'
        | '\u{600}'..='\u{605}'
        | '\u{61c}'
        | '\u{6dd}'
        | '\u{70f}'
        | '\u{8e2}' => true,
        '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' => true,
        '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' => true,
        '\u{ffa0}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{110bd}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' => true,
        '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_matched_parts_are_replaced() {
        for (raw, read) in [
            ("plain\n", "plain\n"),
            ("a\u{200b}b\u{ad}c\0", "abc"),
            ("\u{ff1c}\u{ff53}\u{fb01}é", "<sfie\u{301}"),
        ] {
            assert_eq!(Folded::of(raw).read(), read);
        }
        let folded = Folded::of("x\u{200b}ab\u{ad}ｃd\u{200b}é");
        assert_eq!(folded.read(), "xabcde\u{301}");
        assert_eq!(
            folded.replaced(vec![(4..5, "D"), (1..4, "_")]),
            "x\u{200b}_D\u{200b}é"
        );
        assert!(matches!(folded.replaced(Vec::new()), Cow::Borrowed(_)));
    }
}
