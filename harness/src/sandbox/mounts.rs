//! Folders of the host that an administrator shows to every conversation, under names of their own.

use std::path::PathBuf;
use std::sync::Arc;

use super::virtual_paths::RelativePath;

/// A folder of the host as agents see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Where it is.
    pub host: PathBuf,
    /// Where it is seen, as an absolute path.
    pub inside: String,
    /// Whether it can only be read.
    pub read_only: bool,
}

/// All of them. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Mounts(Arc<[(RelativePath, Mount)]>);

impl Mounts {
    /// Those whose place is a plain path; of two that take the same place the later one, as mounting does.
    pub fn new(mounts: impl IntoIterator<Item = Mount>) -> Self {
        let placed = mounts.into_iter().filter_map(|mount| {
            let place = RelativePath::parse(mount.inside.trim_start_matches('/'))
                .ok()
                .filter(|place| !place.is_empty());
            Some((place?, mount))
        });
        Self(placed.collect())
    }

    /// The innermost mount that a path from `/` on lies in, with the way on from there.
    pub(super) fn find(&self, path: &RelativePath) -> Option<(&Mount, RelativePath)> {
        let holding = self
            .0
            .iter()
            .filter_map(|(place, mount)| Some((place.as_str().len(), mount, path.beneath(place)?)));
        holding
            .max_by_key(|(length, ..)| *length)
            .map(|(_, mount, way)| (mount, way))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_lies_in_the_innermost_mount() {
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
            mounts
                .find(&path)
                .map(|(mount, way)| (mount.host.display().to_string(), way.as_str().to_owned()))
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
