//! The `Range` header, as far as one range goes.

/// What part of a file is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// All of it: no range, or one that is not understood and so is ignored, as HTTP says.
    Whole,
    /// From the first byte to the last, both included.
    Part(u64, u64),
    /// Nothing that the file has.
    Unsatisfiable,
}

/// Reads the header for a file of `length` bytes.
pub(super) fn wanted(header: Option<&str>, length: u64) -> Wanted {
    let Some(spec) = header.and_then(|text| text.trim().strip_prefix("bytes=")) else {
        return Wanted::Whole;
    };
    let Some((first, last)) = spec.split_once('-').filter(|_| !spec.contains(',')) else {
        return Wanted::Whole;
    };
    match (
        first.trim().is_empty(),
        number(first),
        last.trim().is_empty(),
        number(last),
    ) {
        (true, _, false, Some(suffix)) => match (suffix.min(length), length) {
            (0, _) => Wanted::Unsatisfiable,
            (suffix, length) => Wanted::Part(length - suffix, length - 1),
        },
        (false, Some(first), true, _) if first < length => Wanted::Part(first, length - 1),
        (false, Some(first), false, Some(last)) if first <= last && first < length => {
            Wanted::Part(first, last.min(length - 1))
        }
        (false, Some(first), false, Some(last)) if first > last => Wanted::Whole,
        (false, Some(_), false, None) => Wanted::Whole,
        (false, Some(_), _, _) => Wanted::Unsatisfiable,
        _ => Wanted::Whole,
    }
}

/// A number of digits alone; one that is too large stands for a place behind every end.
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
    fn ranges_are_read_as_http_says() {
        for (header, expected) in [
            ("bytes=0-3", Wanted::Part(0, 3)),
            ("bytes=4-", Wanted::Part(4, 9)),
            ("bytes=-2", Wanted::Part(8, 9)),
            ("bytes=-99", Wanted::Part(0, 9)),
            ("bytes=0-99", Wanted::Part(0, 9)),
            ("bytes=0-99999999999999999999", Wanted::Part(0, 9)),
            ("bytes=-99999999999999999999", Wanted::Part(0, 9)),
            ("bytes=99999999999999999999-", Wanted::Unsatisfiable),
            ("bytes=10-", Wanted::Unsatisfiable),
            ("bytes=-0", Wanted::Unsatisfiable),
            ("bytes=0-1,3-4", Wanted::Whole),
            ("bytes=5-1", Wanted::Whole),
            ("bytes=a-b", Wanted::Whole),
            ("bytes=1-b", Wanted::Whole),
            ("bytes=+1-2", Wanted::Whole),
            ("lines=0-1", Wanted::Whole),
        ] {
            assert_eq!(wanted(Some(header), 10), expected, "{header}");
        }
        assert_eq!(wanted(None, 10), Wanted::Whole);
        assert_eq!(wanted(Some("bytes=0-"), 0), Wanted::Unsatisfiable);
    }

    proptest! {
        #[test]
        fn a_part_is_always_inside_the_file(header in "bytes=[0-9]{0,22}-[0-9]{0,22}", length: u64) {
            if let Wanted::Part(first, last) = wanted(Some(&header), length) {
                prop_assert!(first <= last && last < length);
            }
        }
    }
}
