//! Skills of all users: those of the installation, of an older installation, and of the user.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::custom::CustomSkills;
use super::error::SkillError;
use super::history::HistoryEntry;
use super::scan::Scanner;
use super::skill::{Category, Skill, SkillChoice};
use crate::sandbox::thread_dirs::UserDirName;
use crate::sandbox::virtual_paths::RelativePath;
use crate::sandbox::{FileFailure, MountedSkill, SkillMountSource, SkillMounts};
use deerflow_core::clock::{Clock, iso};
use deerflow_core::config::{Extensions, ExtensionsFile, OpenKeys};

/// Folders that contain skills.
#[derive(Debug, Clone)]
pub struct SkillFolders {
    /// Folder of the installation: its own skills in `public`, those of an older installation in
    /// `custom`.
    pub shared: PathBuf,
    /// Runtime home, with the custom skills of users.
    pub home: PathBuf,
}

/// Skills of all users. Cheap to clone; one instance per process.
#[derive(Debug, Clone)]
pub struct Skills(Arc<Library>);

#[derive(Debug)]
struct Library {
    folders: SkillFolders,
    extensions: Arc<ExtensionsFile>,
    /// Settings of the configuration, which override that file.
    overrides: OpenKeys,
    scanner: Scanner,
    clock: Arc<dyn Clock>,
    changes: AtomicU64,
}

impl Skills {
    /// Creates the library for these folders. Skills are enabled by the extensions file and by the
    /// configuration, which overrides it.
    pub fn new(
        folders: SkillFolders,
        extensions: Arc<ExtensionsFile>,
        overrides: OpenKeys,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self(Arc::new(Library {
            folders,
            extensions,
            overrides,
            scanner: Scanner::new(),
            clock,
            changes: AtomicU64::new(0),
        }))
    }

    /// Returns a number that differs after each change made through this library, also after a
    /// failed one. Changes of files by others do not change it.
    pub fn version(&self) -> u64 {
        self.0.changes.load(Ordering::Acquire)
    }

    /// Returns all skills of a user, sorted by name, including disabled ones.
    ///
    /// # Errors
    /// If the disk or the extensions file cannot be read.
    pub async fn list(&self, user: &str) -> Result<Vec<Skill>, SkillError> {
        self.run(user, |library, user| library.all(user)).await
    }

    /// Returns the enabled skills of a user that are in `choice`.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub async fn usable(&self, user: &str, choice: &SkillChoice) -> Result<Vec<Skill>, SkillError> {
        let mut skills = self.list(user).await?;
        skills.retain(|skill| skill.enabled && choice.has(skill.name()));
        Ok(skills)
    }

    /// Returns one skill of a user.
    ///
    /// # Errors
    /// [`SkillError::NotFound`], and as [`list`](Self::list).
    pub async fn get(&self, user: &str, name: &str) -> Result<Skill, SkillError> {
        let name = name.to_owned();
        self.run(user, move |library, user| library.one(user, &name))
            .await
    }

    /// Returns the text of a skill's file.
    ///
    /// # Errors
    /// If the file is missing, too long or not UTF-8.
    pub async fn text(&self, skill: &Skill) -> Result<String, SkillError> {
        let (folder, name) = (skill.folder.host.clone(), skill.name().to_owned());
        self.run("", move |library, _| {
            library
                .scanner
                .text(&folder)?
                .ok_or(SkillError::NotFound(name))
        })
        .await
    }

    /// Enables or disables a skill: for all users if it is public, otherwise for this user.
    ///
    /// # Errors
    /// As [`get`](Self::get), and if the state cannot be stored.
    pub async fn switch(&self, user: &str, name: &str, enabled: bool) -> Result<Skill, SkillError> {
        let name = name.to_owned();
        self.change(user, move |library, user| {
            let skill = library.one(user, &name)?;
            let states = library.states(user);
            let file = if skill.category == Category::Public {
                &*library.extensions
            } else {
                &states
            };
            file.edit(|states| {
                states.switch_skill(&name, enabled);
                Ok::<_, SkillError>(())
            })?;
            library.one(user, &name)
        })
        .await
    }

    /// Installs an archive as a custom skill of the user. On an error, no file is installed.
    ///
    /// # Errors
    /// [`SkillError::Archive`], [`SkillError::Exists`], and disk errors.
    pub async fn install(&self, user: &str, archive: File) -> Result<Skill, SkillError> {
        self.change(user, move |library, user| {
            // Fail early if the result could not be returned.
            library.all(user)?;
            let name = library.custom(user).install(archive, &library.now())?;
            library.one_of(user, &name, Category::Custom)
        })
        .await
    }

    /// Returns a custom skill of the user with its text.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn own(&self, user: &str, name: &str) -> Result<(Skill, String), SkillError> {
        let name = name.to_owned();
        self.run(user, move |library, user| library.with_text(user, &name))
            .await
    }

    /// Replaces the text of a custom skill of the user.
    ///
    /// # Errors
    /// As [`get`](Self::get), [`SkillError::Frontmatter`], [`SkillError::Refused`].
    pub async fn edit(
        &self,
        user: &str,
        name: &str,
        text: String,
    ) -> Result<(Skill, String), SkillError> {
        let name = name.to_owned();
        self.change(user, move |library, user| {
            library.custom(user).edit(&name, &text, &library.now())?;
            library.with_text(user, &name)
        })
        .await
    }

    /// Deletes a custom skill of the user.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn remove(&self, user: &str, name: &str) -> Result<(), SkillError> {
        let name = name.to_owned();
        self.change(user, move |library, user| {
            library.custom(user).remove(&name, &library.now())
        })
        .await
    }

    /// Returns the changes of a custom skill of the user, oldest first, also of a deleted one.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn history(&self, user: &str, name: &str) -> Result<Vec<HistoryEntry>, SkillError> {
        let name = name.to_owned();
        self.run(user, move |library, user| {
            library
                .custom(user)
                .history(&name)?
                .ok_or(SkillError::NotFound(name))
        })
        .await
    }

    /// Restores a custom skill to its text before a change; a negative index counts from the end.
    ///
    /// # Errors
    /// As [`get`](Self::get), [`SkillError::Refused`] if there is no text to restore.
    pub async fn roll_back(
        &self,
        user: &str,
        name: &str,
        index: i64,
    ) -> Result<(Skill, String), SkillError> {
        let name = name.to_owned();
        self.change(user, move |library, user| {
            library
                .custom(user)
                .roll_back(&name, index, &library.now())?;
            library.with_text(user, &name)
        })
        .await
    }

    /// Clears the cache. Changed files are detected without it.
    pub fn reload(&self) {
        self.0.scanner.forget();
        self.0.changes.fetch_add(1, Ordering::Release);
    }

    async fn change<T: Send + 'static>(
        &self,
        user: &str,
        work: impl FnOnce(&Library, &str) -> Result<T, SkillError> + Send + 'static,
    ) -> Result<T, SkillError> {
        // Counted by the worker, since the change completes even if the caller goes away.
        self.run(user, move |library, user| {
            let outcome = work(library, user);
            library.changes.fetch_add(1, Ordering::Release);
            outcome
        })
        .await
    }

    async fn run<T: Send + 'static>(
        &self,
        user: &str,
        work: impl FnOnce(&Library, &str) -> Result<T, SkillError> + Send + 'static,
    ) -> Result<T, SkillError> {
        let (library, user) = (self.0.clone(), user.to_owned());
        match tokio::task::spawn_blocking(move || work(&library, &user)).await {
            Ok(outcome) => outcome,
            Err(error) => {
                tracing::error!(%error, "skill operation panicked or was cancelled");
                Err(FileFailure::Aborted.into())
            }
        }
    }
}

impl SkillMountSource for Skills {
    /// Returns the folders of enabled skills; disabled skills are not visible in conversations.
    fn of(&self, user_id: &str) -> Result<SkillMounts, FileFailure> {
        let skills = self.0.all(user_id).map_err(|error| match error {
            SkillError::Disk(fault) => fault,
            other => FileFailure::Io(std::io::Error::other(other.to_string())),
        })?;
        Ok(SkillMounts::new(
            skills
                .into_iter()
                .filter(|skill| skill.enabled)
                .map(|skill| skill.folder)
                .collect(),
        ))
    }
}

impl Library {
    /// Returns all skills of a user. Of several with the same name, the last category wins; within
    /// a category, the first path.
    fn all(&self, user: &str) -> Result<Vec<Skill>, SkillError> {
        let shared = self.extensions.load()?.overlaid(&self.overrides);
        let own = self.states(user).load()?;
        let mut skills = BTreeMap::new();
        for (category, folder) in self.folders(user) {
            for skill in self
                .in_category(category, folder, &shared, &own)?
                .into_iter()
                .rev()
            {
                skills.insert(skill.name().to_owned(), skill);
            }
        }
        Ok(skills.into_values().collect())
    }

    fn in_category(
        &self,
        category: Category,
        folder: PathBuf,
        shared: &Extensions,
        own: &Extensions,
    ) -> Result<Vec<Skill>, SkillError> {
        let state = |name: &str| match category {
            Category::Public => shared.skill_state(name),
            Category::Legacy | Category::Custom => {
                own.skill_state(name).or_else(|| shared.skill_state(name))
            }
        };
        let found = self.scanner.scan(&folder)?;
        let skills = found.into_iter().map(|found| {
            let path =
                RelativePath::of_plain_names(&[category.dir_name(), found.relative.as_str()]);
            let mounted = MountedSkill {
                path,
                host: folder.join(found.relative.as_str()),
            };
            Skill {
                category,
                enabled: state(&found.head.name).unwrap_or(true),
                head: found.head,
                folder: mounted,
            }
        });
        Ok(skills.collect())
    }

    fn one(&self, user: &str, name: &str) -> Result<Skill, SkillError> {
        let found = self
            .all(user)?
            .into_iter()
            .find(|skill| skill.name() == name);
        found.ok_or_else(|| SkillError::NotFound(excerpt(name)))
    }

    fn one_of(&self, user: &str, name: &str, category: Category) -> Result<Skill, SkillError> {
        let skill = self.one(user, name)?;
        if skill.category == category {
            Ok(skill)
        } else {
            Err(SkillError::NotFound(excerpt(name)))
        }
    }

    fn with_text(&self, user: &str, name: &str) -> Result<(Skill, String), SkillError> {
        let skill = self.one_of(user, name, Category::Custom)?;
        let text = self
            .custom(user)
            .text(name)?
            .ok_or_else(|| SkillError::NotFound(excerpt(name)))?;
        Ok((skill, text))
    }

    /// Folders with the skills of a user, in ascending priority.
    fn folders(&self, user: &str) -> [(Category, PathBuf); 3] {
        [
            (Category::Public, self.folders.shared.join("public")),
            (Category::Legacy, self.folders.shared.join("custom")),
            (Category::Custom, self.custom(user).folder().to_owned()),
        ]
    }

    fn custom(&self, user: &str) -> CustomSkills {
        CustomSkills::new(self.user_folder(user).join("custom"))
    }

    /// File with the enabled state of the user's skills and of legacy skills.
    fn states(&self, user: &str) -> ExtensionsFile {
        ExtensionsFile::at(self.user_folder(user).join("states.json"))
    }

    fn user_folder(&self, user: &str) -> PathBuf {
        self.folders
            .home
            .join("users")
            .join(UserDirName::from_user_id(user).as_str())
            .join("skills")
    }

    fn now(&self) -> String {
        iso(self.clock.now())
    }
}

/// Truncates an untrusted name for a message.
fn excerpt(name: &str) -> String {
    name.chars().take(80).collect()
}

#[cfg(test)]
#[path = "library_tests.rs"]
mod tests;
