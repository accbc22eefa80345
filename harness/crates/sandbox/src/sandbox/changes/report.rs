//! Comparison of two scans, as clients see it.

use serde::Serialize;

use super::ChangeLimits;
use super::content::{Content, is_sensitive};
use super::diff::Differ;
use super::location::Location;
use super::snapshot::{FileSnapshot, Node};

/// Changes of a thread's files.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChangeReport {
    version: u32,
    summary: Summary,
    files: Vec<FileChange>,
    limits: ChangeLimits,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
struct Summary {
    created: usize,
    modified: usize,
    deleted: usize,
    symlink_created: usize,
    additions: usize,
    deletions: usize,
    truncated: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Created,
    Modified,
    Deleted,
    SymlinkCreated,
}

/// Reason for which a change has no diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum NoDiff {
    Binary,
    Large,
    Sensitive,
    Truncated,
    Symlink,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct FileChange {
    path: String,
    root: &'static str,
    status: Status,
    binary: bool,
    sensitive: bool,
    size_before: Option<u64>,
    size_after: Option<u64>,
    sha256_before: Option<String>,
    sha256_after: Option<String>,
    diff: String,
    diff_truncated: bool,
    diff_unavailable_reason: Option<NoDiff>,
    additions: usize,
    deletions: usize,
    symlink: bool,
    symlink_target_before: Option<String>,
    symlink_target_after: Option<String>,
}

/// Node before and after.
type Pair<'a> = (Option<&'a Node>, Option<&'a Node>);

impl ChangeReport {
    /// Compares two scans. `None` without changes.
    pub(super) fn of(before: &FileSnapshot, after: &FileSnapshot) -> Option<Self> {
        let limits = before.limits;
        let mut report = Self {
            version: 1,
            summary: Summary {
                truncated: before.is_partial() || after.is_partial(),
                ..Summary::default()
            },
            files: Vec::new(),
            limits,
        };
        let mut differ = Differ::new(limits.max_total_diff_bytes);
        let mut is_empty = true;
        let created = after
            .nodes
            .iter()
            .filter(|(location, _)| !before.nodes.contains_key(location) && before.covers(location))
            .map(|(location, new)| (location, (None, Some(new))));
        let others = before
            .nodes
            .iter()
            .map(|(location, old)| (location, (Some(old), after.nodes.get(location))))
            .filter(|(location, (old, new))| match (old, new) {
                (Some(old), Some(new)) => differ_in_content(old, new),
                _ => after.covers(location),
            });
        for (location, pair) in created.chain(others) {
            is_empty = false;
            report.add(location, pair, &mut differ);
        }
        (!is_empty).then_some(report)
    }

    fn add(&mut self, location: &Location, pair: Pair<'_>, differ: &mut Differ) {
        let status = match pair {
            (Some(_), None) => Status::Deleted,
            (Some(Node::Link(_)), Some(Node::Link(_))) => Status::Modified,
            (_, Some(Node::Link(_))) => Status::SymlinkCreated,
            (None, _) => Status::Created,
            _ => Status::Modified,
        };
        let summary = &mut self.summary;
        *match status {
            Status::Created => &mut summary.created,
            Status::Modified => &mut summary.modified,
            Status::Deleted => &mut summary.deleted,
            Status::SymlinkCreated => &mut summary.symlink_created,
        } += 1;
        if self.files.len() >= self.limits.max_files {
            summary.truncated = true;
            return;
        }
        let change = FileChange::of(location, status, pair, differ);
        summary.additions += change.additions;
        summary.deletions += change.deletions;
        self.files.push(change);
    }
}

/// Returns `true` if the content differs, or if the facts differ and the content is unknown.
fn differ_in_content(old: &Node, new: &Node) -> bool {
    match (old, new) {
        (Node::File(old_facts, old), Node::File(new_facts, new)) => {
            old_facts != new_facts
                && match (old.sha256(), new.sha256()) {
                    (Some(old), Some(new)) => old != new,
                    _ => true,
                }
        }
        (old, new) => old != new,
    }
}

impl FileChange {
    fn of(location: &Location, status: Status, (old, new): Pair<'_>, differ: &mut Differ) -> Self {
        let (old, new) = (Side::of(old), Side::of(new));
        let mut change = Self {
            path: location.virtual_path(),
            root: location.root.dir_name(),
            status,
            binary: old.is(|content| matches!(content, Content::Binary(_)))
                || new.is(|content| matches!(content, Content::Binary(_))),
            sensitive: is_sensitive(&location.path),
            size_before: old.size,
            size_after: new.size,
            sha256_before: old.content.and_then(Content::sha256),
            sha256_after: new.content.and_then(Content::sha256),
            diff: String::new(),
            diff_truncated: false,
            diff_unavailable_reason: None,
            additions: 0,
            deletions: 0,
            symlink: old.target.is_some() || new.target.is_some(),
            symlink_target_before: old.target.map(str::to_owned),
            symlink_target_after: new.target.map(str::to_owned),
        };
        let is_large = |side: Side<'_>| side.is(|content| *content == Content::Large);
        change.diff_unavailable_reason = match (old.text(), new.text()) {
            _ if change.symlink => Some(NoDiff::Symlink),
            _ if change.sensitive => Some(NoDiff::Sensitive),
            _ if change.binary => Some(NoDiff::Binary),
            _ if is_large(old) || is_large(new) => Some(NoDiff::Large),
            (Some(before), Some(after)) => change.add_diff(before, after, differ),
            _ => Some(NoDiff::Truncated),
        };
        change
    }

    fn add_diff(&mut self, before: &str, after: &str, differ: &mut Differ) -> Option<NoDiff> {
        let diff = differ.diff(&self.path, before, after);
        self.additions = diff.additions;
        self.deletions = diff.deletions;
        self.diff_truncated = diff.is_truncated;
        self.diff = diff.text;
        (self.diff_truncated && self.diff.is_empty()).then_some(NoDiff::Truncated)
    }
}

/// One side of a comparison.
#[derive(Clone, Copy)]
struct Side<'a> {
    size: Option<u64>,
    content: Option<&'a Content>,
    target: Option<&'a str>,
    is_absent: bool,
}

impl<'a> Side<'a> {
    fn of(node: Option<&'a Node>) -> Self {
        let none = Self {
            size: None,
            content: None,
            target: None,
            is_absent: node.is_none(),
        };
        match node {
            None => none,
            Some(Node::Link(target)) => Self {
                target: Some(target),
                ..none
            },
            Some(Node::File(facts, content)) => Self {
                size: Some(facts.size),
                content: Some(content),
                ..none
            },
        }
    }

    fn is(self, matches: impl Fn(&Content) -> bool) -> bool {
        self.content.is_some_and(matches)
    }

    /// Returns the text to compare; an absent file has an empty one.
    fn text(self) -> Option<&'a str> {
        match self.content {
            Some(Content::Text(text)) => Some(text),
            _ if self.is_absent => Some(""),
            _ => None,
        }
    }
}
