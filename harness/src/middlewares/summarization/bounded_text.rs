//! Shortens texts in the middle.

/// Marker that replaces the removed middle.
const MARKER: &str = "\n[...]\n";

/// Shortens a text to at most `max_chars` characters: two thirds from its beginning, one third from
/// its end. A non-ASCII character counts as two, because it needs more tokens.
pub(crate) fn bounded(text: String, max_chars: usize) -> String {
    bounded_by(text, max_chars, 2)
}

/// Same as [`bounded`], where a non-ASCII character counts as `wide` characters.
pub(super) fn bounded_by(text: String, max_chars: usize, wide: usize) -> String {
    let weight = |letter: char| if letter.is_ascii() { 1 } else { wide };
    if text.chars().map(weight).sum::<usize>() <= max_chars {
        return text;
    }
    let room = max_chars.saturating_sub(MARKER.len());
    let take = |max: usize, chars: &mut dyn Iterator<Item = char>| {
        let mut remaining = max;
        chars
            .take_while(|letter| {
                remaining
                    .checked_sub(weight(*letter))
                    .map(|rest| remaining = rest)
                    .is_some()
            })
            .collect::<Vec<char>>()
    };
    let head = take(room * 2 / 3, &mut text.chars());
    let tail = take(room - room * 2 / 3, &mut text.chars().rev());
    head.into_iter()
        .chain(MARKER.chars())
        .chain(tail.into_iter().rev())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounded_text_keeps_its_ends() {
        assert_eq!(bounded("short".to_owned(), 10), "short");
        assert_eq!(
            bounded("a".repeat(20) + &"z".repeat(20), 19),
            format!("{}{MARKER}{}", "a".repeat(8), "z".repeat(4))
        );
        assert!(bounded("漢".repeat(1_000), 100).chars().count() < 60);
    }
}
