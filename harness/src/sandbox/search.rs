//! Finding files by name and lines by what they say.

use std::fs::{File, Metadata};
use std::io::Read;
use std::time::{Duration, Instant};

use globset::{GlobBuilder, GlobMatcher};
use regex::{Regex, RegexBuilder};
use tokio_util::sync::CancellationToken;

use super::blocking_files::BlockingFiles;
use super::fault::{Fault, FileError};
use super::ignore::is_ignored;
use super::listing::one_line;
use super::places::Start;
use super::safe_fs::{NodeKind, SafeDir};
use super::virtual_paths::{RelativePath, VirtualPath};

/// Files longer than this are not searched.
const LONGEST_FILE: u64 = 1 << 20;
/// Where a file with a NUL is taken for binary.
const LOOKED_AT_FOR_NUL: usize = 8 * 1024;
/// Lines with more characters are not searched.
const LONGEST_LINE: usize = 2000;
/// Characters of a line that are shown.
const SHOWN_OF_LINE: usize = 200;
/// Directories within directories that are looked into: each is held open meanwhile.
const DEEPEST: usize = 40;
/// The longest pattern of names, in bytes, and the most alternatives within alternatives of one. Reading it goes down a call for each,
/// and a model may write any number.
const LONGEST_PATTERN: usize = 1_024;
/// The longest regular expression, in bytes: a letter of one may stand for a thousand ranges that are to be gone through.
const LONGEST_EXPRESSION: usize = 1_024;
const MOST_NESTED: usize = 10;
/// How large a regular expression may become, in bytes: what it costs per letter grows with it.
const LARGEST_EXPRESSION: usize = 256 << 10;
/// What one search reads at most, and how long it goes on: some patterns take a minute for a megabyte.
const MOST_READ: u64 = 256 << 20;
const LONGEST_SEARCH: Duration = Duration::from_secs(5);

/// A pattern of names, `/` being matched by `**` alone.
#[derive(Debug, Clone)]
pub struct NamePattern(GlobMatcher);

impl NamePattern {
    /// Reads a pattern such as `**/*.md`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(pattern: &str) -> Result<Self, String> {
        if pattern.len() > LONGEST_PATTERN || nesting(pattern) > MOST_NESTED {
            return Err(format!(
                "the pattern is longer than {LONGEST_PATTERN} bytes, or has more than {MOST_NESTED} braces within braces"
            ));
        }
        let glob = GlobBuilder::new(pattern).literal_separator(true).build();
        glob.map(|glob| Self(glob.compile_matcher()))
            .map_err(|error| format!("the pattern cannot be read: {}", error.kind()))
    }

    /// Whether it means this path, or this name where it has no `/`.
    fn matches(&self, path: &str) -> bool {
        let name_only = !self.0.glob().glob().contains('/');
        self.0.is_match(if name_only {
            path.rsplit('/').next().unwrap_or(path)
        } else {
            path
        })
    }
}

/// How deep braces stand within braces.
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

/// What lines are looked for.
#[derive(Debug, Clone)]
pub struct LineQuery {
    /// What a line has in it.
    pub text: Regex,
    /// Which files are searched; all where there is none.
    pub files: Option<NamePattern>,
}

impl LineQuery {
    /// Reads a regular expression, or the text itself. This may take seconds, so not where others wait.
    ///
    /// # Errors
    /// What is wrong with the expression.
    pub fn parse(
        pattern: &str,
        literal: bool,
        case_sensitive: bool,
        files: Option<NamePattern>,
    ) -> Result<Self, String> {
        if pattern.len() > LONGEST_EXPRESSION {
            return Err(format!(
                "the pattern is longer than {LONGEST_EXPRESSION} bytes"
            ));
        }
        let escaped = literal.then(|| regex::escape(pattern));
        let mut builder = RegexBuilder::new(escaped.as_deref().unwrap_or(pattern));
        let text = builder
            .case_insensitive(!case_sensitive)
            .size_limit(LARGEST_EXPRESSION)
            .build();
        text.map(|text| Self { text, files })
            .map_err(|error| format!("the pattern cannot be read: {error}"))
    }
}

/// What a search found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// One line for each, in order.
    pub rows: Vec<String>,
    /// Whether there is more than was asked for, or more than one search looks at.
    pub incomplete: bool,
}

impl BlockingFiles {
    /// The files beneath a directory, and on demand the directories, whose path from there matches; at most `most`.
    ///
    /// # Errors
    /// As [`list`](Self::list), and [`Fault::Aborted`] when `stop` is cancelled.
    pub fn glob(
        &self,
        path: &VirtualPath,
        pattern: &NamePattern,
        with_directories: bool,
        most: usize,
        stop: &CancellationToken,
    ) -> Result<Found, FileError> {
        let mut found = Found::default();
        let bounds = Bounds::from_now(stop);
        let mut walk = Walk {
            left: self.max_entries(),
            bounds,
        };
        for start in self.starts(path)? {
            let walked = walk.visit(&start.directory, &start.prefix(), &mut |kind, relative| {
                if (kind == NodeKind::File || with_directories) && pattern.0.is_match(relative) {
                    found.incomplete |= found.rows.len() == most;
                    if !found.incomplete {
                        found.rows.push(format!("{path}/{}", one_line(relative)));
                    }
                }
                Ok(!found.incomplete)
            });
            found.incomplete |= !walked.map_err(|fault| fault.at(path))?;
        }
        Ok(found)
    }

    /// The lines of text files at or beneath `path` that a query means, as `path:line: text`; at most `most`.
    ///
    /// # Errors
    /// As [`glob`](Self::glob).
    pub fn grep(
        &self,
        path: &VirtualPath,
        query: &LineQuery,
        most: usize,
        stop: &CancellationToken,
    ) -> Result<Found, FileError> {
        let bounds = Bounds::from_now(stop);
        let mut found = Found::default();
        let starts = match self.starts(path) {
            Ok(starts) => starts,
            Err(FileError::At {
                fault: Fault::NotDirectory,
                ..
            }) => {
                let (file, _) = self.open_read(path)?;
                add_lines(file, &path.to_string(), query, most, bounds, &mut found)
                    .map_err(|fault| fault.at(path))?;
                return Ok(found);
            }
            Err(error) => return Err(error),
        };
        let mut walk = Walk {
            left: self.max_entries(),
            bounds,
        };
        let mut left_to_read = MOST_READ;
        for start in starts {
            let walked = walk.visit(&start.directory, &start.prefix(), &mut |kind, relative| {
                let is_meant = query
                    .files
                    .as_ref()
                    .is_none_or(|files| files.matches(relative));
                if kind != NodeKind::File || !is_meant {
                    return Ok(true);
                }
                // A file that vanished, became something else or may not be read is no match.
                let Some((file, metadata)) = start
                    .open(relative)
                    .filter(|(_, metadata)| metadata.len() <= LONGEST_FILE)
                else {
                    return Ok(true);
                };
                left_to_read = left_to_read.saturating_sub(metadata.len());
                add_lines(
                    file,
                    &format!("{path}/{relative}"),
                    query,
                    most,
                    bounds,
                    &mut found,
                )?;
                Ok(!found.incomplete && left_to_read > 0)
            });
            found.incomplete |= !walked.map_err(|fault| fault.at(path))?;
        }
        Ok(found)
    }
}

impl Start {
    /// What stands before the names in its directory.
    fn prefix(&self) -> String {
        if self.way.is_empty() {
            String::new()
        } else {
            format!("{}/", self.way.as_str())
        }
    }

    /// A file that the walk came by.
    fn open(&self, relative: &str) -> Option<(File, Metadata)> {
        let inside = RelativePath::parse(relative).ok()?.beneath(&self.way)?;
        self.directory.open_read(&inside).ok()
    }
}

/// When a search ends before it is through.
#[derive(Debug, Clone, Copy)]
struct Bounds<'a> {
    stop: &'a CancellationToken,
    until: Instant,
}

impl<'a> Bounds<'a> {
    fn from_now(stop: &'a CancellationToken) -> Self {
        Self {
            stop,
            until: Instant::now() + LONGEST_SEARCH,
        }
    }

    /// Whether there is time for more.
    fn allow_more(self) -> Result<bool, Fault> {
        if self.stop.is_cancelled() {
            Err(Fault::Aborted)
        } else {
            Ok(Instant::now() < self.until)
        }
    }
}

/// A way through directories that looks at so many entries at most.
struct Walk<'a> {
    left: usize,
    bounds: Bounds<'a>,
}

impl Walk<'_> {
    /// Visits what lies beneath a directory by name, without ignored names, links and special files. `false` when it did not see all.
    fn visit(
        &mut self,
        directory: &SafeDir,
        prefix: &str,
        visitor: &mut dyn FnMut(NodeKind, &str) -> Result<bool, Fault>,
    ) -> Result<bool, Fault> {
        let (mut entries, more) = directory.entries(self.left)?;
        self.left -= entries.len();
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
            if entry.kind == NodeKind::Directory && relative.matches('/').count() >= DEEPEST {
                all = false;
            } else if entry.kind == NodeKind::Directory {
                match directory
                    .enter(&entry.name)
                    .and_then(|inner| self.visit(&inner, &format!("{relative}/"), visitor))
                {
                    Ok(saw_all) => all &= saw_all,
                    // It vanished, became a link or may not be read meanwhile.
                    Err(
                        Fault::NotFound | Fault::NotDirectory | Fault::Symlink | Fault::Permission,
                    ) => {}
                    Err(fault) => return Err(fault),
                }
                if self.left == 0 {
                    return Ok(false);
                }
            }
        }
        Ok(all)
    }
}

fn add_lines(
    file: impl Read,
    shown: &str,
    query: &LineQuery,
    most: usize,
    bounds: Bounds<'_>,
    found: &mut Found,
) -> Result<(), Fault> {
    let mut bytes = Vec::new();
    let is_read = file.take(LONGEST_FILE + 1).read_to_end(&mut bytes).is_ok();
    let is_text = !bytes.iter().take(LOOKED_AT_FOR_NUL).any(|byte| *byte == 0);
    if !is_read || !is_text || bytes.len() as u64 > LONGEST_FILE {
        return Ok(());
    }
    for (position, line) in String::from_utf8_lossy(&bytes).lines().enumerate() {
        if !bounds.allow_more()? {
            found.incomplete = true;
            return Ok(());
        }
        if line.chars().nth(LONGEST_LINE).is_some() || !query.text.is_match(line) {
            continue;
        }
        if found.rows.len() == most {
            found.incomplete = true;
            return Ok(());
        }
        let text: String = line.chars().take(SHOWN_OF_LINE).collect();
        found.rows.push(format!("{shown}:{}: {text}", position + 1));
    }
    Ok(())
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
