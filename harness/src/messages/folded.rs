//! Texts as they read: without letters that nobody sees, and with those that only look different made plain.

use std::borrow::Cow;
use std::ops::Range;

use unicode_normalization::char::decompose_compatible;

/// A text as it reads, and where each of its bytes was in the text that it is of.
pub(super) struct Folded<'a> {
    raw: &'a str,
    read: Cow<'a, str>,
    /// For each byte that is read; none where nothing changed.
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
        for (at, letter) in raw.char_indices().filter(|(_, letter)| !is_unseen(*letter)) {
            decompose_compatible(letter, |plain| {
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

    /// The text as it reads.
    pub(super) fn read(&self) -> &str {
        &self.read
    }

    /// Where in the text itself a part that is not empty comes from.
    fn origin(&self, part: &Range<usize>) -> Range<usize> {
        let (Some(&start), Some(&last)) = (
            self.origins.get(part.start),
            self.origins.get(part.end.saturating_sub(1)),
        ) else {
            return part.clone();
        };
        start..last + self.raw[last..].chars().next().map_or(0, char::len_utf8)
    }

    /// The text itself with some parts that are read replaced, which do not overlap; everything else as it was.
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

/// Letters that show nothing, of which some steer how others are shown, and control characters that break no line.
fn is_unseen(letter: char) -> bool {
    match letter {
        '\t' | '\n' | '\r' => false,
        letter if letter.is_control() => true,
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
    fn what_is_replaced_was_read_and_the_rest_stays_as_it_was() {
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
