//! Removes the middle of a text.

/// Space reserved for the mark, in characters.
const MARK_CHARS: usize = 80;

/// Returns the beginning and the end of `text` around a mark with the number of missing characters,
/// at most `max` characters in total. Cuts at line ends if they are near.
pub(super) fn clipped(text: &str, max: usize, head: usize, tail: usize) -> String {
    let total = text.chars().count();
    let room = max.saturating_sub(MARK_CHARS);
    if room == 0 {
        return first(text, max).to_owned();
    }
    let head = head.min(room);
    let tail = tail.min(room - head);
    let begin = first(text, head);
    let begin = begin
        .rfind('\n')
        .filter(|end| is_cheap(begin.len() - end, begin))
        .map_or(begin, |end| &begin[..end]);
    let end = last(text, tail, total);
    let end = end
        .find('\n')
        .filter(|at| is_cheap(*at, end))
        .map_or(end, |at| &end[at + 1..]);
    let missing = total - begin.chars().count() - end.chars().count();
    format!("{begin}\n[... {missing} characters are left out here ...]\n{end}")
}

/// Reports whether a part may lose this many bytes to end at a line end.
fn is_cheap(cost: usize, part: &str) -> bool {
    cost <= part.len() / 4
}

/// Returns the first characters of a text.
pub(super) fn first(text: &str, chars: usize) -> &str {
    text.char_indices()
        .nth(chars)
        .map_or(text, |(end, _)| &text[..end])
}

/// Returns the last characters of a text with `total` characters.
pub(super) fn last(text: &str, chars: usize, total: usize) -> &str {
    &text[first(text, total.saturating_sub(chars)).len()..]
}
