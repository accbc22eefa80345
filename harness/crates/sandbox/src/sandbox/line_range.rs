//! Selection of lines from a text, as offered by `read_file`.

/// Range of lines, 1-based and inclusive; `None` means no bound.
///
/// The numbers come from a model and are signed for that reason: an invalid range becomes
/// [`TextRead::BadRange`], not an error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LineRange {
    /// First line.
    pub start: Option<i64>,
    /// Last line.
    pub end: Option<i64>,
}

/// Result of reading a text file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextRead {
    /// The requested lines.
    Text {
        /// Text with the line endings of the file; without the final line ending if a range was
        /// requested.
        text: String,
        /// Number of the first line of `text`.
        first_line: usize,
    },
    /// The file has no content.
    Empty,
    /// The file ends before the first requested line.
    StartPastEnd,
    /// The range is invalid.
    BadRange(BadRange),
}

/// Reason why a range is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadRange {
    /// The first line is below 1.
    StartBelowOne,
    /// The last line is below 1.
    EndBelowOne,
    /// The last line is before the first.
    EndBeforeStart,
}

impl LineRange {
    /// All lines.
    pub const ALL: Self = Self {
        start: None,
        end: None,
    };

    /// Selects the range from the content of a file.
    pub fn select(self, content: String) -> TextRead {
        if let Some(problem) = self.problem() {
            return TextRead::BadRange(problem);
        }
        if content.is_empty() {
            return TextRead::Empty;
        }
        if self == Self::ALL {
            return TextRead::Text {
                text: content,
                first_line: 1,
            };
        }
        let first_line = self.start.map_or(1, to_line_number);
        let last_line = self.end.map_or(usize::MAX, to_line_number);
        let mut lines = content
            .split_inclusive('\n')
            .skip(first_line - 1)
            .peekable();
        if lines.peek().is_none() {
            return TextRead::StartPastEnd;
        }
        let mut text: String = lines.take(last_line - first_line + 1).collect();
        if text.ends_with('\n') {
            text.pop();
        }
        TextRead::Text { text, first_line }
    }

    fn problem(self) -> Option<BadRange> {
        match (self.start, self.end) {
            (Some(..=0), _) => Some(BadRange::StartBelowOne),
            (_, Some(..=0)) => Some(BadRange::EndBelowOne),
            (Some(start), Some(end)) if end < start => Some(BadRange::EndBeforeStart),
            _ => None,
        }
    }
}

/// Converts a line number that is at least 1. Numbers beyond the range of `usize` are equivalent.
fn to_line_number(line: i64) -> usize {
    usize::try_from(line)
        .unwrap_or(usize::MAX)
        .clamp(1, usize::MAX - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn select(start: Option<i64>, end: Option<i64>, content: &str) -> TextRead {
        LineRange { start, end }.select(content.to_owned())
    }

    fn text(text: &str, first_line: usize) -> TextRead {
        TextRead::Text {
            text: text.to_owned(),
            first_line,
        }
    }

    #[test]
    fn select_returns_inclusive_range_with_open_bounds() {
        let content = "one\ntwo\r\nthree\n";
        assert_eq!(select(None, None, content), text(content, 1));
        assert_eq!(select(Some(2), Some(2), content), text("two\r", 2));
        assert_eq!(select(Some(2), None, content), text("two\r\nthree", 2));
        assert_eq!(select(None, Some(1), content), text("one", 1));
        assert_eq!(select(Some(3), Some(99), content), text("three", 3));
        assert_eq!(select(Some(1), Some(i64::MAX), "a"), text("a", 1));
    }

    #[test]
    fn select_reports_empty_file_and_start_past_end() {
        assert_eq!(select(None, None, ""), TextRead::Empty);
        assert_eq!(select(Some(5), None, ""), TextRead::Empty);
        assert_eq!(select(Some(2), None, "one\n"), TextRead::StartPastEnd);
        assert_eq!(
            select(Some(i64::MAX), None, "one\n"),
            TextRead::StartPastEnd
        );
    }

    #[test]
    fn select_reports_reason_of_invalid_range() {
        assert_eq!(
            select(Some(0), None, "a"),
            TextRead::BadRange(BadRange::StartBelowOne)
        );
        assert_eq!(
            select(Some(i64::MIN), Some(1), "a"),
            TextRead::BadRange(BadRange::StartBelowOne)
        );
        assert_eq!(
            select(None, Some(-1), "a"),
            TextRead::BadRange(BadRange::EndBelowOne)
        );
        assert_eq!(
            select(Some(3), Some(2), "a"),
            TextRead::BadRange(BadRange::EndBeforeStart)
        );
    }
}
