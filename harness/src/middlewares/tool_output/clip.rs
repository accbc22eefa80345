//! Cuts the middle out of a text.

/// Room for the mark, whatever number stands in it.
const MARK_CHARS: usize = 80;

/// The beginning and the end of `text` around a mark that says how much is missing, together at most `max` characters; cut at
/// the ends of lines where some are near.
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

/// Whether a part may lose so many bytes to end with a line.
fn is_cheap(cost: usize, part: &str) -> bool {
    cost <= part.len() / 4
}

/// The first characters of a text.
pub(super) fn first(text: &str, chars: usize) -> &str {
    text.char_indices()
        .nth(chars)
        .map_or(text, |(end, _)| &text[..end])
}

/// The last characters of a text that has `total`.
pub(super) fn last(text: &str, chars: usize, total: usize) -> &str {
    &text[first(text, total.saturating_sub(chars)).len()..]
}
