//! Texts that a model reads as the result of a file operation.

use std::fmt::Display;
use std::time::Duration;

use super::command::CommandEnd;
use super::line_range::{BadRange, TextRead};
use super::listing::Listing;
use super::search::SearchResults;

/// Maximum length of a listing, in characters.
pub const LIST_MAX_CHARS: usize = 20_000;

/// Maximum length of a file's content, in characters.
pub const READ_MAX_CHARS: usize = 50_000;

/// Maximum length of an error, in characters.
pub const ERROR_MAX_CHARS: usize = 2_000;

/// Result of a successful operation without output.
pub const DONE: &str = "OK";

/// Result without content.
pub const EMPTY: &str = "(empty)";

/// Renders a listing, one path per line, in at most `max_chars` characters (0: unlimited).
pub fn listing(listing: &Listing, max_chars: usize) -> String {
    if listing.lines.is_empty() && !listing.incomplete {
        return EMPTY.to_owned();
    }
    let text = listing.lines.join("\n");
    let total = text.chars().count();
    let unread = if listing.incomplete {
        " of what was looked at, and there is more"
    } else {
        ""
    };
    if !listing.incomplete && fits(total, max_chars) {
        return text;
    }
    cut_head(&text, total, max_chars, |shown, _| {
        format!(
            "\n... [{shown} of {total} characters shown{unread}; list a subdirectory to see the rest]"
        )
    })
}

/// Renders the results of a search beneath `path`, one row each. `what` is the plural noun for the
/// rows.
pub fn search_results(results: &SearchResults, what: &str, path: &dyn Display) -> String {
    let count = results.rows.len();
    match (count, results.incomplete) {
        (0, false) => format!("No {what} under {path}"),
        (0, true) => {
            format!("No {what} in what was looked at under {path}; search a subdirectory")
        }
        (_, false) => format!(
            "Found {count} {what} under {path}\n{}",
            results.rows.join("\n")
        ),
        (_, true) => {
            let rows = results.rows.join("\n");
            format!(
                "Found {count} {what} under {path} (showing first {count})\n{rows}\n... narrow the pattern or the path to see the rest"
            )
        }
    }
}

/// Renders the lines of a file in at most `max_chars` characters (0: unlimited).
pub fn file_text(read: &TextRead, max_chars: usize) -> String {
    let (text, first_line) = match read {
        TextRead::Text { text, first_line } => (text, *first_line),
        TextRead::Empty => return EMPTY.to_owned(),
        TextRead::StartPastEnd => return "(start_line exceeds file length)".to_owned(),
        TextRead::BadRange(problem) => return bad_range(*problem).to_owned(),
    };
    let total = text.chars().count();
    if fits(total, max_chars) {
        return text.clone();
    }
    cut_head(text, total, max_chars, |shown, head| {
        let line = first_line + head.bytes().filter(|byte| *byte == b'\n').count();
        let advice = if line == first_line {
            "this line alone is longer than what can be shown, cut it through the shell".to_owned()
        } else {
            format!("read on with start_line={line}")
        };
        format!("\n... [{shown} of {total} characters shown, up to line {line}; {advice}]")
    })
}

/// Renders a failed operation in at most [`ERROR_MAX_CHARS`] characters.
pub fn error(problem: &dyn Display) -> String {
    middle_cut(&format!("Error: {problem}"), ERROR_MAX_CHARS)
}

/// Renders the result of a command in at most `max_chars` characters (0: unlimited): its output,
/// then its end unless it exited with 0.
pub fn command(
    out: &str,
    err: &str,
    end: CommandEnd,
    time_limit: Duration,
    max_chars: usize,
) -> String {
    let notice = match end {
        CommandEnd::Exited(0) => None,
        CommandEnd::Exited(code) => Some(format!("Exit Code: {code}")),
        CommandEnd::TimedOut => Some(format!(
            "The command was ended because it took longer than {} seconds.",
            time_limit.as_secs()
        )),
        CommandEnd::TooMuchOutput => {
            Some("The command was ended because its output exceeded the limit.".to_owned())
        }
    };
    let err = (!err.is_empty()).then(|| {
        if out.is_empty() {
            err.to_owned()
        } else {
            format!("Std Error:\n{err}")
        }
    });
    let parts = [
        Some(out.to_owned()).filter(|out| !out.is_empty()),
        err,
        notice,
    ];
    let text = parts
        .into_iter()
        .flatten()
        .map(|part| part.trim_end_matches('\n').to_owned())
        .collect::<Vec<_>>()
        .join("\n");
    match text.chars().count() {
        0 => "(no output)".to_owned(),
        total if fits(total, max_chars) => text,
        total => cut_middle(&text, total, max_chars),
    }
}

/// Retains the first and the last half of the text that fits, around a marker with the number of
/// omitted characters.
fn cut_middle(text: &str, total: usize, max_chars: usize) -> String {
    let mark = |skipped: usize| {
        format!(
            "\n... [{skipped} of {total} characters are left out here; write output to a file to read all of it] ...\n"
        )
    };
    // The marker is longest if the whole text is omitted.
    let Some(room) = max_chars
        .checked_sub(mark(total).len())
        .filter(|room| *room > 0)
    else {
        return head(text, max_chars).to_owned();
    };
    let first = room / 2;
    let skipped = total - room;
    format!(
        "{}{}{}",
        head(text, first),
        mark(skipped),
        &text[head(text, first + skipped).len()..]
    )
}

/// Returns the text, or, if it is longer than `max_chars` characters, its first two thirds and its
/// end around a marker.
pub fn middle_cut(text: &str, max_chars: usize) -> String {
    const MARK: &str = "\n...\n";
    let total = text.chars().count();
    if total <= max_chars {
        return text.to_owned();
    }
    let Some(room) = max_chars.checked_sub(MARK.len()).filter(|room| *room > 0) else {
        return head(text, max_chars).to_owned();
    };
    let first = (max_chars * 2 / 3).min(room);
    let last_from = total - (room - first);
    format!(
        "{}{MARK}{}",
        head(text, first),
        &text[head(text, last_from).len()..]
    )
}

fn bad_range(problem: BadRange) -> &'static str {
    match problem {
        BadRange::StartBelowOne => "(start_line must be 1 or more)",
        BadRange::EndBelowOne => "(end_line must be 1 or more)",
        BadRange::EndBeforeStart => "(end_line is before start_line)",
    }
}

fn fits(chars: usize, max_chars: usize) -> bool {
    max_chars == 0 || chars <= max_chars
}

/// Retains as much of the beginning as fits together with the marker. The marker function receives
/// the number of retained characters and the retained text. If not even a marker fits, returns the
/// beginning alone.
fn cut_head(
    text: &str,
    total: usize,
    max_chars: usize,
    marker: impl Fn(usize, &str) -> String,
) -> String {
    let max_chars = if max_chars == 0 {
        usize::MAX
    } else {
        max_chars
    };
    let mut shown = total.min(max_chars);
    loop {
        let prefix = head(text, shown);
        let marker = marker(shown, prefix);
        let marker_chars = marker.chars().count();
        if shown.saturating_add(marker_chars) <= max_chars {
            return format!("{prefix}{marker}");
        }
        // The marker length depends on the retained length (digits, advice): try again with less.
        let room = max_chars
            .saturating_sub(marker_chars)
            .min(shown.saturating_sub(1));
        if room == 0 {
            return head(text, max_chars).to_owned();
        }
        shown = room;
    }
}

/// Returns the first `chars` characters.
fn head(text: &str, chars: usize) -> &str {
    text.char_indices()
        .nth(chars)
        .map_or(text, |(end, _)| &text[..end])
}

// Former names, for crates that were written against them.
#[doc(hidden)]
pub use crate::sandbox::render::search_results as found;

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
