//! Search for files by name and for lines by content.

use std::fs::{File, Metadata};
use std::io::Read;
use std::time::{Duration, Instant};

use globset::{GlobBuilder, GlobMatcher};
use regex::{Regex, RegexBuilder};
use tokio_util::sync::CancellationToken;

use super::blocking_files::BlockingFiles;
use super::file_error::{FileError, FileFailure};
use super::ignore::is_ignored;
use super::listing::one_line;
use super::resolve::SearchStart;
use super::safe_fs::{NodeKind, SafeDir};
use super::virtual_paths::{RelativePath, VirtualPath};

/// Maximum size of a searched file, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Number of bytes that are checked for NUL, the sign of a binary file.
const BINARY_CHECK_BYTES: usize = 8 * 1024;
/// Maximum length of a searched line, in characters.
const MAX_LINE_CHARS: usize = 2000;
/// Maximum number of characters returned per line.
const LINE_EXCERPT_CHARS: usize = 200;
/// Maximum nesting of walked directories: each level holds an open handle.
const MAX_DEPTH: usize = 40;
/// Maximum length of a name pattern, in bytes. The parser recurses per nested alternative, and a
/// model may write any number of them; see [`MAX_NESTED_BRACES`].
const MAX_PATTERN_BYTES: usize = 1_024;
/// Maximum length of a regular expression, in bytes: one character class may expand to a thousand
/// ranges.
const MAX_EXPRESSION_BYTES: usize = 1_024;
const MAX_NESTED_BRACES: usize = 10;
/// Maximum compiled size of a regular expression, in bytes: the matching cost per character grows
/// with it.
const MAX_COMPILED_BYTES: usize = 256 << 10;
/// Maximum number of bytes read by one search, and its timeout: some patterns take a minute per
/// megabyte.
const MAX_READ_BYTES: u64 = 256 << 20;
const SEARCH_TIMEOUT: Duration = Duration::from_secs(5);

/// Pattern of file names; `/` is matched by `**` only.
#[derive(Debug, Clone)]
pub struct NamePattern(GlobMatcher);

impl NamePattern {
    /// Parses a pattern such as `**/*.md`.
    ///
    /// # Errors
    /// Description of the syntax error.
    pub fn parse(pattern: &str) -> Result<Self, String> {
        if pattern.len() > MAX_PATTERN_BYTES || nesting(pattern) > MAX_NESTED_BRACES {
            return Err(format!(
                "the pattern is longer than {MAX_PATTERN_BYTES} bytes, or has more than {MAX_NESTED_BRACES} braces within braces"
            ));
        }
        let glob = GlobBuilder::new(pattern).literal_separator(true).build();
        glob.map(|glob| Self(glob.compile_matcher()))
            .map_err(|error| format!("the pattern cannot be read: {}", error.kind()))
    }

    /// Matches the path, or its last name if the pattern has no `/`.
    fn matches(&self, path: &str) -> bool {
        let name_only = !self.0.glob().glob().contains('/');
        self.0.is_match(if name_only {
            path.rsplit('/').next().unwrap_or(path)
        } else {
            path
        })
    }
}

/// Returns the maximum nesting of braces.
fn nesting(pattern: &str) -> usize {
    let depths = pattern.bytes().scan(0_usize, |depth, byte| {
        match byte {
            b'{' => *depth += 1,
            b'}' => *depth = depth.saturating_sub(1),
            _ => {}
        }
        Some(*depth)
    });
    depths.max().unwrap_or_default()
}

/// Query for lines.
#[derive(Debug, Clone)]
pub struct LineQuery {
    /// Expression that a line must match.
    pub text: Regex,
    /// Pattern of searched files; `None` searches all.
    pub files: Option<NamePattern>,
}

impl LineQuery {
    /// Parses a regular expression or a literal text. May take seconds, so call it on a blocking
    /// thread.
    ///
    /// # Errors
    /// Description of the syntax error.
    pub fn parse(
        pattern: &str,
        literal: bool,
        case_sensitive: bool,
        files: Option<NamePattern>,
    ) -> Result<Self, String> {
        if pattern.len() > MAX_EXPRESSION_BYTES {
            return Err(format!(
                "the pattern is longer than {MAX_EXPRESSION_BYTES} bytes"
            ));
        }
        let escaped = literal.then(|| regex::escape(pattern));
        let mut builder = RegexBuilder::new(escaped.as_deref().unwrap_or(pattern));
        let text = builder
            .case_insensitive(!case_sensitive)
            .size_limit(MAX_COMPILED_BYTES)
            .build();
        text.map(|text| Self { text, files })
            .map_err(|error| format!("the pattern cannot be read: {error}"))
    }
}

/// Results of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchResults {
    /// Sorted rows, one line each.
    pub rows: Vec<String>,
    /// `true` if rows were omitted because of a limit.
    pub incomplete: bool,
}

impl BlockingFiles {
    /// Returns the files beneath a directory, and optionally the directories, whose relative path
    /// matches; at most `max_rows`.
    ///
    /// # Errors
    /// As [`list`](Self::list), and [`FileFailure::Aborted`] if `stop` is cancelled.
    pub fn glob(
        &self,
        path: &VirtualPath,
        pattern: &NamePattern,
        with_directories: bool,
        max_rows: usize,
        stop: &CancellationToken,
    ) -> Result<SearchResults, FileError> {
        let mut results = SearchResults::default();
        let bounds = Bounds::from_now(stop);
        let mut walk = Walk {
            budget: self.max_entries(),
            bounds,
        };
        for start in self.search_starts(path)? {
            let walked = walk.visit(&start.directory, &start.prefix(), &mut |kind, relative| {
                if (kind == NodeKind::File || with_directories) && pattern.0.is_match(relative) {
                    results.incomplete |= results.rows.len() == max_rows;
                    if !results.incomplete {
                        results.rows.push(format!("{path}/{}", one_line(relative)));
                    }
                }
                Ok(!results.incomplete)
            });
            results.incomplete |= !walked.map_err(|fault| fault.at(path))?;
        }
        Ok(results)
    }

    /// Returns the matching lines of text files at or beneath `path`, as `path:line: text`; at most
    /// `max_rows`.
    ///
    /// # Errors
    /// As [`glob`](Self::glob).
    pub fn grep(
        &self,
        path: &VirtualPath,
        query: &LineQuery,
        max_rows: usize,
        stop: &CancellationToken,
    ) -> Result<SearchResults, FileError> {
        let bounds = Bounds::from_now(stop);
        let mut results = SearchResults::default();
        let search_starts = match self.search_starts(path) {
            Ok(search_starts) => search_starts,
            Err(FileError::At {
                fault: FileFailure::NotDirectory,
                ..
            }) => {
                let (file, _) = self.open_read(path)?;
                add_lines(
                    file,
                    &path.to_string(),
                    query,
                    max_rows,
                    bounds,
                    &mut results,
                )
                .map_err(|fault| fault.at(path))?;
                return Ok(results);
            }
            Err(error) => return Err(error),
        };
        let mut walk = Walk {
            budget: self.max_entries(),
            bounds,
        };
        let mut remaining_bytes = MAX_READ_BYTES;
        for start in search_starts {
            let walked = walk.visit(&start.directory, &start.prefix(), &mut |kind, relative| {
                let is_selected = query
                    .files
                    .as_ref()
                    .is_none_or(|files| files.matches(relative));
                if kind != NodeKind::File || !is_selected {
                    return Ok(true);
                }
                // A file that vanished, changed its kind or cannot be read has no match.
                let Some((file, metadata)) = start
                    .open(relative)
                    .filter(|(_, metadata)| metadata.len() <= MAX_FILE_BYTES)
                else {
                    return Ok(true);
                };
                remaining_bytes = remaining_bytes.saturating_sub(metadata.len());
                add_lines(
                    file,
                    &format!("{path}/{relative}"),
                    query,
                    max_rows,
                    bounds,
                    &mut results,
                )?;
                Ok(!results.incomplete && remaining_bytes > 0)
            });
            results.incomplete |= !walked.map_err(|fault| fault.at(path))?;
        }
        Ok(results)
    }
}

impl SearchStart {
    /// Prefix of the names in this directory.
    fn prefix(&self) -> String {
        if self.relative.is_empty() {
            String::new()
        } else {
            format!("{}/", self.relative.as_str())
        }
    }

    /// Opens a file found by the walk.
    fn open(&self, relative: &str) -> Option<(File, Metadata)> {
        let inside = RelativePath::parse(relative)
            .ok()?
            .beneath(&self.relative)?;
        self.directory.open_read(&inside).ok()
    }
}

/// Conditions that end a search early.
#[derive(Debug, Clone, Copy)]
struct Bounds<'a> {
    stop: &'a CancellationToken,
    until: Instant,
}

impl<'a> Bounds<'a> {
    fn from_now(stop: &'a CancellationToken) -> Self {
        Self {
            stop,
            until: Instant::now() + SEARCH_TIMEOUT,
        }
    }

    /// Reports whether time remains.
    ///
    /// # Errors
    /// [`FileFailure::Aborted`] if the search was cancelled.
    fn allow_more(self) -> Result<bool, FileFailure> {
        if self.stop.is_cancelled() {
            Err(FileFailure::Aborted)
        } else {
            Ok(Instant::now() < self.until)
        }
    }
}

/// Directory walk with a limited number of entries.
struct Walk<'a> {
    budget: usize,
    bounds: Bounds<'a>,
}

impl Walk<'_> {
    /// Visits the content of a directory in name order, without ignored names, links and special
    /// files. Returns `false` if it is incomplete.
    fn visit(
        &mut self,
        directory: &SafeDir,
        prefix: &str,
        visitor: &mut dyn FnMut(NodeKind, &str) -> Result<bool, FileFailure>,
    ) -> Result<bool, FileFailure> {
        let (mut entries, more) = directory.entries(self.budget)?;
        self.budget -= entries.len();
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        let mut all = !more;
        for entry in entries {
            if !self.bounds.allow_more()? {
                return Ok(false);
            }
            let Ok(name) = entry.name.to_str() else {
                continue;
            };
            if is_ignored(name) || entry.kind == NodeKind::Other {
                continue;
            }
            let relative = format!("{prefix}{name}");
            if !visitor(entry.kind, &relative)? {
                return Ok(false);
            }
            if entry.kind == NodeKind::Directory && relative.matches('/').count() >= MAX_DEPTH {
                all = false;
            } else if entry.kind == NodeKind::Directory {
                match directory
                    .enter(&entry.name)
                    .and_then(|inner| self.visit(&inner, &format!("{relative}/"), visitor))
                {
                    Ok(was_complete) => all &= was_complete,
                    // It vanished, became a link or cannot be read.
                    Err(
                        FileFailure::NotFound
                        | FileFailure::NotDirectory
                        | FileFailure::Symlink
                        | FileFailure::Permission,
                    ) => {}
                    Err(fault) => return Err(fault),
                }
                if self.budget == 0 {
                    return Ok(false);
                }
            }
        }
        Ok(all)
    }
}

fn add_lines(
    file: impl Read,
    display_path: &str,
    query: &LineQuery,
    max_rows: usize,
    bounds: Bounds<'_>,
    results: &mut SearchResults,
) -> Result<(), FileFailure> {
    let mut bytes = Vec::new();
    let is_read = file
        .take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .is_ok();
    let is_text = !bytes.iter().take(BINARY_CHECK_BYTES).any(|byte| *byte == 0);
    if !is_read || !is_text || bytes.len() as u64 > MAX_FILE_BYTES {
        return Ok(());
    }
    for (position, line) in String::from_utf8_lossy(&bytes).lines().enumerate() {
        if !bounds.allow_more()? {
            results.incomplete = true;
            return Ok(());
        }
        if line.chars().nth(MAX_LINE_CHARS).is_some() || !query.text.is_match(line) {
            continue;
        }
        if results.rows.len() == max_rows {
            results.incomplete = true;
            return Ok(());
        }
        let text: String = line.chars().take(LINE_EXCERPT_CHARS).collect();
        results
            .rows
            .push(format!("{display_path}:{}: {text}", position + 1));
    }
    Ok(())
}

// Former names, for crates that were written against them.
#[doc(hidden)]
pub use crate::sandbox::search::SearchResults as Found;

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
