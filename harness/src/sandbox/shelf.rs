//! Folders of the host that the conversations of a user read and never change: its skills, beneath `/mnt/skills`.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::fault::Fault;
use super::virtual_paths::RelativePath;

/// Knows which folders a user's conversations read.
pub trait Shelves: fmt::Debug + Send + Sync + 'static {
    /// The folders as they are now. May block on the disk.
    ///
    /// # Errors
    /// When it cannot be said.
    fn of(&self, user_id: &str) -> Result<Shelf, Fault>;
}

/// The folders of one user, none of them within another. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Shelf(Arc<[ShelvedFolder]>);

/// A folder that is read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShelvedFolder {
    /// Where it is seen, from `/mnt/skills` on.
    pub path: RelativePath,
    /// Where it lies on the host; never to be shown.
    pub host: PathBuf,
}

impl Shelf {
    /// These folders, in the order of their paths.
    pub fn new(mut folders: Vec<ShelvedFolder>) -> Self {
        folders.sort_unstable();
        Self(folders.into())
    }

    /// The folders.
    pub fn folders(&self) -> &[ShelvedFolder] {
        &self.0
    }

    /// The folder that a path lies in, with the way on from there.
    pub fn find(&self, path: &RelativePath) -> Option<(&ShelvedFolder, RelativePath)> {
        self.0
            .iter()
            .find_map(|folder| Some((folder, path.beneath(&folder.path)?)))
    }

    /// The folders that lie beneath a path, with the way to each. The path itself is no folder, only a part of their names.
    pub(super) fn beneath(
        &self,
        path: &RelativePath,
    ) -> impl Iterator<Item = (&ShelvedFolder, RelativePath)> {
        self.0
            .iter()
            .filter_map(move |folder| Some((folder, folder.path.beneath(path)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_find_their_folder_by_whole_names() {
        let path = |text: &str| RelativePath::parse(text).unwrap();
        let folder = |text: &str| ShelvedFolder {
            path: path(text),
            host: text.into(),
        };
        let shelf = Shelf::new(vec![
            folder("public/b"),
            folder("public/a"),
            folder("custom/a"),
        ]);
        let found = |text: &str| {
            shelf
                .find(&path(text))
                .map(|(folder, rest)| (folder.host.display().to_string(), rest.as_str().to_owned()))
        };
        assert_eq!(
            found("public/a/SKILL.md"),
            Some(("public/a".to_owned(), "SKILL.md".to_owned()))
        );
        assert_eq!(
            found("public/a"),
            Some(("public/a".to_owned(), String::new()))
        );
        assert_eq!(
            (found("public/ab"), found("public"), found("")),
            (None, None, None)
        );
        let beneath = |text: &str| {
            shelf
                .beneath(&path(text))
                .map(|(_, way)| way.as_str().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(beneath(""), ["custom/a", "public/a", "public/b"]);
        assert_eq!(beneath("public"), ["a", "b"]);
        assert!(beneath("pub").is_empty());
    }
}
