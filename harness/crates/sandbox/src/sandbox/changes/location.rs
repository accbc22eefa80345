//! Location of a scanned file, in the order in which scans visit files.

use std::cmp::Ordering;

use crate::sandbox::virtual_paths::Root;

/// Roots that are compared, in the order of scans: results for the user first.
pub(super) const ROOTS: [Root; 2] = [Root::Outputs, Root::Workspace];

/// Root of a file, and its path beneath the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Location {
    pub(super) root: Root,
    pub(super) path: String,
}

impl Location {
    /// Location of `name` in the directory with the path `above`.
    pub(super) fn inside(root: Root, above: &str, name: &str) -> Self {
        let path = if above.is_empty() {
            name.to_owned()
        } else {
            format!("{above}/{name}")
        };
        Self { root, path }
    }

    /// Path as models and clients see it.
    pub(super) fn virtual_path(&self) -> String {
        format!("/mnt/user-data/{}/{}", self.root.dir_name(), self.path)
    }

    /// Returns `true` if this location is beneath the directory.
    pub(super) fn is_in(&self, directory: &Self) -> bool {
        let beneath = |rest: &str| directory.path.is_empty() || rest.starts_with('/');
        self.root == directory.root
            && self
                .path
                .strip_prefix(directory.path.as_str())
                .is_some_and(beneath)
    }

    fn rank(&self) -> Option<usize> {
        ROOTS.iter().position(|root| *root == self.root)
    }
}

impl Ord for Location {
    fn cmp(&self, other: &Self) -> Ordering {
        let names = || self.path.split('/').cmp(other.path.split('/'));
        self.rank().cmp(&other.rank()).then_with(names)
    }
}

impl PartialOrd for Location {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
