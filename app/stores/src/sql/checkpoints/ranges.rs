//! Ranges of the message log: which positions a read needs, and the spans that it reads for them.

use deerflow_runtime::checkpoint::LogRange;

/// Maximum gap between two ranges that is read as part of one span, which is cheaper than another
/// statement.
const MAX_GAP: u64 = 32;
/// Maximum number of statements of one read of messages.
const MAX_SPANS: usize = 16;

/// Returns `true` if sorted, disjoint ranges contain a position.
pub(super) fn contains_position(ranges: &[LogRange], position: u64) -> bool {
    let after = ranges.partition_point(|LogRange(first, _)| *first <= position);
    after > 0 && position <= ranges[after - 1].1
}

/// Merges sorted, disjoint ranges into at most [`MAX_SPANS`] spans of the log, each read by one
/// statement. Always reads over gaps of up to [`MAX_GAP`] positions, and over wider ones only as
/// far as the number of spans requires.
pub(super) fn spans(ranges: &[LogRange]) -> Vec<LogRange> {
    let mut gap = MAX_GAP;
    loop {
        let spans = merged(ranges, gap);
        if spans.len() <= MAX_SPANS {
            return spans;
        }
        gap = gap.saturating_mul(4);
    }
}

/// Returns the smallest set of ranges that covers exactly the positions of all layouts.
pub(super) fn union<'a>(layouts: impl IntoIterator<Item = &'a Vec<LogRange>>) -> Vec<LogRange> {
    let mut all: Vec<LogRange> = layouts.into_iter().flatten().copied().collect();
    all.sort_unstable_by_key(|range| (range.0, range.1));
    merged(&all, 0)
}

/// Merges sorted ranges that overlap, touch, or are separated by at most `gap` positions.
fn merged(sorted: &[LogRange], gap: u64) -> Vec<LogRange> {
    let mut merged: Vec<LogRange> = Vec::new();
    for &LogRange(first, last) in sorted {
        match merged.last_mut() {
            Some(LogRange(_, end)) if first <= end.saturating_add(gap).saturating_add(1) => {
                *end = last.max(*end)
            }
            _ => merged.push(LogRange(first, last)),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn union_merges_overlapping_and_touching_ranges() {
        let layouts = [
            vec![LogRange(1, 4), LogRange(9, 9)],
            vec![LogRange(5, 6)],
            vec![LogRange(2, 3), LogRange(8, 10)],
        ];
        assert_eq!(union(&layouts), vec![LogRange(1, 6), LogRange(8, 10)]);
    }

    #[test]
    fn fragments_are_read_as_one_span() {
        // Every third position belongs to a message that was replaced.
        let ranges: Vec<LogRange> = (0..1_000).map(|n| LogRange(3 * n + 2, 3 * n + 3)).collect();
        assert_eq!(spans(&ranges), vec![LogRange(2, 3_000)]);
        assert!(contains_position(&ranges, 2) && contains_position(&ranges, 3_000));
        assert!(
            !contains_position(&ranges, 1)
                && !contains_position(&ranges, 4)
                && !contains_position(&ranges, 3_001)
        );
    }

    #[test]
    fn spans_skip_wide_gaps_and_are_limited() {
        let apart = [
            LogRange(1, 10),
            LogRange(1_000, 1_010),
            LogRange(1_020, 1_030),
        ];
        assert_eq!(spans(&apart), vec![LogRange(1, 10), LogRange(1_000, 1_030)]);
        let scattered: Vec<LogRange> = (0..500).map(|n| LogRange(1_000 * n, 1_000 * n)).collect();
        assert!(spans(&scattered).len() <= MAX_SPANS);
        assert_eq!(spans(&[]), vec![]);
    }
}
