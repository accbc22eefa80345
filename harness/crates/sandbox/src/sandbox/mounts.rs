//! Host folders that the administrator mounts into every conversation.

use std::path::PathBuf;
use std::sync::Arc;

use super::virtual_paths::RelativePath;

/// A host folder mounted for agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Path on the host.
    pub host: PathBuf,
    /// Absolute path inside the conversation.
    pub inside: String,
    /// `true` if the mount is read-only.
    pub read_only: bool,
}

/// All configured mounts. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Mounts(Arc<[(RelativePath, Mount)]>);

impl Mounts {
    /// Accepts mounts whose inside path is valid. If two mounts use the same path, the later one
    /// wins, as in `mount`.
    pub fn new(mounts: impl IntoIterator<Item = Mount>) -> Self {
        let entries = mounts.into_iter().filter_map(|mount| {
            let mount_path = RelativePath::parse(mount.inside.trim_start_matches('/'))
                .ok()
                .filter(|mount_path| !mount_path.is_empty());
            Some((mount_path?, mount))
        });
        Self(entries.collect())
    }

    /// Returns the innermost mount that contains a path relative to `/`, with the path inside of
    /// it.
    pub(super) fn find(&self, path: &RelativePath) -> Option<(&Mount, RelativePath)> {
        let containing = self.0.iter().filter_map(|(mount_path, mount)| {
            Some((mount_path.as_str().len(), mount, path.beneath(mount_path)?))
        });
        containing
            .max_by_key(|(length, ..)| *length)
            .map(|(_, mount, relative)| (mount, relative))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn find_returns_innermost_mount() {
        let mount = |inside: &str, host: &str| Mount {
            host: host.into(),
            inside: inside.to_owned(),
            read_only: true,
        };
        let mounts = Mounts::new([
            mount("/mnt/data", "/a"),
            mount("/mnt/data/in/", "/b"),
            mount("/", "/c"),
            mount("/x/../y", "/d"),
        ]);
        let found = |path: &str| {
            let path = RelativePath::parse(path).unwrap();
            mounts.find(&path).map(|(mount, relative)| {
                (
                    mount.host.display().to_string(),
                    relative.as_str().to_owned(),
                )
            })
        };
        assert_eq!(
            found("mnt/data/x/y"),
            Some(("/a".to_owned(), "x/y".to_owned()))
        );
        assert_eq!(found("mnt/data/in"), Some(("/b".to_owned(), String::new())));
        assert_eq!(
            (found("mnt/database"), found("etc"), found("y")),
            (None, None, None)
        );
    }
}
