//! Unified diffs of texts, within limits of size and time.

use std::time::{Duration, Instant};

use similar::{ChangeTag, TextDiff};

/// Time for all diffs of a report. After that, differences are found with larger, less precise
/// parts.
const TIME: Duration = Duration::from_secs(2);
/// Maximum total size of the compared texts, in bytes.
const MAX_INPUT_BYTES: usize = 8 << 20;
/// Number of unchanged lines around a change.
const CONTEXT: usize = 3;

/// Difference of two texts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LineDiff {
    /// Unified diff; empty if nothing of it is within the limits.
    pub(super) text: String,
    pub(super) is_truncated: bool,
    pub(super) additions: usize,
    pub(super) deletions: usize,
}

/// Diffs of one report.
#[derive(Debug)]
pub(super) struct Differ {
    input_left: usize,
    output_left: usize,
    deadline: Instant,
}

impl Differ {
    /// Creates diffs of at most `max_bytes` in total.
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            input_left: MAX_INPUT_BYTES,
            output_left: max_bytes,
            deadline: Instant::now() + TIME,
        }
    }

    /// Compares two texts by lines.
    pub(super) fn diff(&mut self, path: &str, before: &str, after: &str) -> LineDiff {
        let input = before.len() + after.len();
        if input > self.input_left {
            return LineDiff {
                is_truncated: true,
                ..LineDiff::default()
            };
        }
        self.input_left -= input;
        let diff = TextDiff::configure()
            .deadline(self.deadline)
            .diff_lines(before, after);
        let (mut additions, mut deletions) = (0, 0);
        for change in diff.iter_all_changes() {
            match change.tag() {
                ChangeTag::Insert => additions += 1,
                ChangeTag::Delete => deletions += 1,
                ChangeTag::Equal => {}
            }
        }
        // A name with a line break must not imitate lines of the diff.
        let path = path.escape_debug();
        let mut text = diff
            .unified_diff()
            .context_radius(CONTEXT)
            .header(&format!("a{path}"), &format!("b{path}"))
            .to_string();
        let is_truncated = text.len() > self.output_left;
        cut_to_lines(&mut text, self.output_left);
        self.output_left -= text.len();
        LineDiff {
            text,
            is_truncated,
            additions,
            deletions,
        }
    }
}

/// Cuts a text to at most `limit` bytes, after a whole line.
fn cut_to_lines(text: &mut String, limit: usize) {
    if text.len() <= limit {
        return;
    }
    let end = text.as_bytes()[..limit]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |last| last + 1);
    text.truncate(end);
}
