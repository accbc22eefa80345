//! Scan of a thread's files: facts of each file, and the content of small ones.

use std::collections::BTreeMap;

use super::ChangeLimits;
use super::content::{Budget, Content};
use super::facts::Facts;
use super::location::{Location, ROOTS};
use crate::sandbox::safe_fs::{Entry, NodeKind, SafeDir};
use crate::sandbox::thread_dirs::ThreadDirs;
use crate::sandbox::virtual_paths::Root;

/// Maximum total size of the content that a comparison reads, in bytes.
const MAX_COMPARED_BYTES: u64 = 16 << 20;
/// Maximum depth of scanned directories.
const MAX_DEPTH: usize = 32;
/// Maximum number of entries of a scanned directory, as a multiple of the files of a scan.
const ENTRIES_PER_FILE: usize = 4;
/// Directories of dependencies, caches, version control and long tool results, which a scan omits.
const OMITTED: [&str; 11] = [
    ".cache",
    ".git",
    ".hg",
    ".next",
    ".svn",
    ".tool-results",
    ".venv",
    "__pycache__",
    "node_modules",
    "site-packages",
    "venv",
];

/// A scanned file or link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    File(Facts, Content),
    /// Symbolic link with its target.
    Link(String),
}

/// Files of a thread at one moment.
#[derive(Debug, Default)]
pub(super) struct FileSnapshot {
    pub(super) limits: ChangeLimits,
    pub(super) nodes: BTreeMap<Location, Node>,
    /// Location at which a limit ended the scan; files before it were visited.
    pub(super) end: Option<Location>,
    /// Directories that were not scanned, without omitted ones.
    pub(super) skipped: Vec<Location>,
    directories: usize,
}

impl FileSnapshot {
    /// Scans the thread's files and reads small ones, `bytes` in total.
    pub(super) fn before(dirs: &ThreadDirs, limits: ChangeLimits, bytes: u64) -> Self {
        let mut budget = Budget {
            bytes,
            file_bytes: limits.max_file_bytes_for_diff,
        };
        Self::scan(dirs, limits, &mut |directory, entry, location, facts| {
            budget.read(directory, entry, location, facts)
        })
    }

    /// Scans the thread's files again and reads those whose facts differ.
    pub(super) fn after(&self, dirs: &ThreadDirs) -> Self {
        let mut budget = Budget {
            bytes: MAX_COMPARED_BYTES,
            file_bytes: self.limits.max_file_bytes_for_diff,
        };
        let is_same = |location: &Location, facts: Facts| matches!(self.nodes.get(location), Some(Node::File(old, _)) if *old == facts);
        Self::scan(
            dirs,
            self.limits,
            &mut |directory, entry, location, facts| {
                if is_same(location, facts) {
                    Content::Unchanged
                } else {
                    budget.read(directory, entry, location, facts)
                }
            },
        )
    }

    /// Total size of the retained text, in bytes.
    pub(super) fn text_bytes(&self) -> usize {
        let sizes = self.nodes.values().map(|node| match node {
            Node::File(_, Content::Text(text)) => text.len(),
            _ => 0,
        });
        sizes.sum()
    }

    /// Returns `true` if the scan would have visited a file at this location.
    pub(super) fn covers(&self, location: &Location) -> bool {
        self.end.as_ref().is_none_or(|end| location < end)
            && !self.skipped.iter().any(|skipped| location.is_in(skipped))
    }

    /// Returns `true` if a limit or an error omitted files.
    pub(super) fn is_partial(&self) -> bool {
        self.end.is_some() || !self.skipped.is_empty()
    }

    fn scan(dirs: &ThreadDirs, limits: ChangeLimits, content: &mut ReadContent<'_>) -> Self {
        let mut snapshot = Self {
            limits,
            ..Self::default()
        };
        for root in ROOTS {
            match dirs.open(root) {
                Ok(directory) => snapshot.directory(&directory, root, "", 0, content),
                // A thread without files, or a root that a command replaced.
                Err(_) => continue,
            }
        }
        snapshot
    }

    fn directory(
        &mut self,
        directory: &SafeDir,
        root: Root,
        above: &str,
        depth: usize,
        content: &mut ReadContent<'_>,
    ) {
        let max_entries = self.limits.max_scanned_files.max(1) * ENTRIES_PER_FILE;
        let mut entries = match directory.entries(max_entries) {
            Ok((entries, false)) => entries,
            // The system chooses which of too many entries it returns, so none is comparable.
            Ok((_, true)) => {
                self.end = Some(Location::inside(root, above, ""));
                return;
            }
            Err(_) => {
                self.skipped.push(Location {
                    root,
                    path: above.to_owned(),
                });
                return;
            }
        };
        // The order is that of locations, so that a scan that ends early has visited all files
        // before its end.
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        for entry in entries {
            if self.end.is_some() {
                return;
            }
            // A path that is not UTF-8 cannot be reported.
            let Ok(name) = entry.name.to_str() else {
                continue;
            };
            let location = Location::inside(root, above, name);
            if entry.kind == NodeKind::Directory {
                if !OMITTED.contains(&name) {
                    self.inner(directory, &entry, &location, depth, content);
                }
            } else if self.nodes.len() >= self.limits.max_scanned_files {
                self.end = Some(location);
            } else if let Some(node) = node(directory, &entry, &location, content) {
                self.nodes.insert(location, node);
            }
        }
    }

    fn inner(
        &mut self,
        directory: &SafeDir,
        entry: &Entry,
        location: &Location,
        depth: usize,
        content: &mut ReadContent<'_>,
    ) {
        if self.directories >= self.limits.max_scanned_files {
            self.end = Some(location.clone());
            return;
        }
        self.directories += 1;
        match directory.enter(&entry.name) {
            Ok(inner) if depth < MAX_DEPTH => {
                self.directory(&inner, location.root, &location.path, depth + 1, content);
            }
            // Too deep, without permission, or replaced since the directory was read.
            _ => self.skipped.push(location.clone()),
        }
    }
}

/// Function that returns the content of a file with these facts.
type ReadContent<'a> = dyn FnMut(&SafeDir, &Entry, &Location, Facts) -> Content + 'a;

/// Returns a file or link; `None` for other nodes, such as pipes, and for removed ones.
fn node(
    directory: &SafeDir,
    entry: &Entry,
    location: &Location,
    content: &mut ReadContent<'_>,
) -> Option<Node> {
    if entry.kind == NodeKind::Other {
        let target = rustix::fs::readlinkat(directory, entry.name.as_c_str(), Vec::new()).ok()?;
        return Some(Node::Link(target.to_string_lossy().into_owned()));
    }
    let stat = directory.stat_name(entry.name.as_c_str()).ok()?;
    let facts = Facts::from(&stat);
    let content = content(directory, entry, location, facts);
    Some(Node::File(facts, content))
}
