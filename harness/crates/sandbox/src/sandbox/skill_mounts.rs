//! Skill folders of the host that a user's conversations can read but not change, beneath
//! `/mnt/skills`.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::file_error::FileFailure;
use super::virtual_paths::RelativePath;

/// Source of the skill folders of a user.
///
/// ```
/// use deerflow_sandbox::sandbox::{FileFailure, SkillMountSource, SkillMounts};
///
/// /// Source without skills, for all users.
/// #[derive(Debug)]
/// struct NoSkills;
///
/// impl SkillMountSource for NoSkills {
///     fn of(&self, _user_id: &str) -> Result<SkillMounts, FileFailure> {
///         Ok(SkillMounts::default())
///     }
/// }
///
/// assert!(NoSkills.of("ann").unwrap().folders().is_empty());
/// ```
pub trait SkillMountSource: fmt::Debug + Send + Sync + 'static {
    /// Returns the current folders of a user. May block on the disk.
    ///
    /// # Errors
    /// If they cannot be determined.
    fn of(&self, user_id: &str) -> Result<SkillMounts, FileFailure>;
}

/// Skill folders of one user, none nested in another. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct SkillMounts(Arc<[MountedSkill]>);

/// A mounted skill folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MountedSkill {
    /// Path relative to `/mnt/skills`.
    pub path: RelativePath,
    /// Path on the host. Must never appear in output.
    pub host: PathBuf,
}

impl SkillMounts {
    /// Creates the set, sorted by path.
    pub fn new(mut folders: Vec<MountedSkill>) -> Self {
        folders.sort_unstable();
        Self(folders.into())
    }

    /// The folders, sorted by path.
    pub fn folders(&self) -> &[MountedSkill] {
        &self.0
    }

    /// Returns the folder that contains a path, and the path within it.
    pub fn find(&self, path: &RelativePath) -> Option<(&MountedSkill, RelativePath)> {
        self.0
            .iter()
            .find_map(|folder| Some((folder, path.beneath(&folder.path)?)))
    }

    /// Returns the folders below a path that is only a prefix of their names, each with its path
    /// relative to that prefix.
    pub(super) fn beneath(
        &self,
        path: &RelativePath,
    ) -> impl Iterator<Item = (&MountedSkill, RelativePath)> {
        self.0
            .iter()
            .filter_map(move |folder| Some((folder, folder.path.beneath(path)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn find_matches_whole_path_components() {
        let path = |text: &str| RelativePath::parse(text).unwrap();
        let folder = |text: &str| MountedSkill {
            path: path(text),
            host: text.into(),
        };
        let skills = SkillMounts::new(vec![
            folder("public/b"),
            folder("public/a"),
            folder("custom/a"),
        ]);
        let found = |text: &str| {
            skills
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
            skills
                .beneath(&path(text))
                .map(|(_, relative)| relative.as_str().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(beneath(""), ["custom/a", "public/a", "public/b"]);
        assert_eq!(beneath("public"), ["a", "b"]);
        assert!(beneath("pub").is_empty());
    }
}
