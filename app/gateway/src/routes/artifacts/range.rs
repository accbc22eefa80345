//! The `Range` header, limited to a single range.

/// Requested part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ByteRange {
    /// The whole file: no range, or an unsupported one, which HTTP allows to ignore.
    Whole,
    /// From the first byte to the last, both inclusive.
    Part(u64, u64),
    /// No byte of the range exists.
    Unsatisfiable,
}

/// Parses the header for a file of `length` bytes.
pub(super) fn parse_range(header: Option<&str>, length: u64) -> ByteRange {
    let Some(spec) = header.and_then(|text| text.trim().strip_prefix("bytes=")) else {
        return ByteRange::Whole;
    };
    let Some((first, last)) = spec.split_once('-').filter(|_| !spec.contains(',')) else {
        return ByteRange::Whole;
    };
    match (
        first.trim().is_empty(),
        number(first),
        last.trim().is_empty(),
        number(last),
    ) {
        (true, _, false, Some(suffix)) => match (suffix.min(length), length) {
            (0, _) => ByteRange::Unsatisfiable,
            (suffix, length) => ByteRange::Part(length - suffix, length - 1),
        },
        (false, Some(first), true, _) if first < length => ByteRange::Part(first, length - 1),
        (false, Some(first), false, Some(last)) if first <= last && first < length => {
            ByteRange::Part(first, last.min(length - 1))
        }
        (false, Some(first), false, Some(last)) if first > last => ByteRange::Whole,
        (false, Some(_), false, None) => ByteRange::Whole,
        (false, Some(_), _, _) => ByteRange::Unsatisfiable,
        _ => ByteRange::Whole,
    }
}

/// Parses digits; a number that is too large becomes a position beyond any file.
fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_follow_http() {
        for (header, expected) in [
            ("bytes=0-3", ByteRange::Part(0, 3)),
            ("bytes=4-", ByteRange::Part(4, 9)),
            ("bytes=-2", ByteRange::Part(8, 9)),
            ("bytes=-99", ByteRange::Part(0, 9)),
            ("bytes=0-99", ByteRange::Part(0, 9)),
            ("bytes=0-99999999999999999999", ByteRange::Part(0, 9)),
            ("bytes=-99999999999999999999", ByteRange::Part(0, 9)),
            ("bytes=99999999999999999999-", ByteRange::Unsatisfiable),
            ("bytes=10-", ByteRange::Unsatisfiable),
            ("bytes=-0", ByteRange::Unsatisfiable),
            ("bytes=0-1,3-4", ByteRange::Whole),
            ("bytes=5-1", ByteRange::Whole),
            ("bytes=a-b", ByteRange::Whole),
            ("bytes=1-b", ByteRange::Whole),
            ("bytes=+1-2", ByteRange::Whole),
            ("lines=0-1", ByteRange::Whole),
        ] {
            assert_eq!(parse_range(Some(header), 10), expected, "{header}");
        }
        assert_eq!(parse_range(None, 10), ByteRange::Whole);
        assert_eq!(parse_range(Some("bytes=0-"), 0), ByteRange::Unsatisfiable);
    }

    proptest! {
        #[test]
        fn range_is_always_inside_the_file(header in "bytes=[0-9]{0,22}-[0-9]{0,22}", length: u64) {
            if let ByteRange::Part(first, last) = parse_range(Some(&header), length) {
                prop_assert!(first <= last && last < length);
            }
        }
    }
}
