//! Who has which skills: the installation's, an older installation's, and the user's own.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use super::custom::CustomSkills;
use super::error::SkillError;
use super::history::HistoryEntry;
use super::scan::Scanner;
use super::skill::{Category, Skill, SkillChoice};
use crate::clock::{Clock, iso};
use crate::config::{Extensions, ExtensionsFile, OpenKeys};
use crate::sandbox::thread_dirs::UserDirName;
use crate::sandbox::virtual_paths::RelativePath;
use crate::sandbox::{Fault, Shelf, ShelvedFolder, Shelves};

/// Where skills lie.
#[derive(Debug, Clone)]
pub struct SkillPlaces {
    /// The installation's folder: its own in `public`, those of an older installation in `custom`.
    pub shared: PathBuf,
    /// The runtime home, which has users' own.
    pub home: PathBuf,
}

/// The skills of everybody. Cheap to clone; a process has one of these.
#[derive(Debug, Clone)]
pub struct Skills(Arc<Library>);

#[derive(Debug)]
struct Library {
    places: SkillPlaces,
    extensions: Arc<ExtensionsFile>,
    /// What the configuration says instead of that file.
    over: OpenKeys,
    scanner: Scanner,
    clock: Arc<dyn Clock>,
}

impl Skills {
    /// Skills in these places, switched by the file of extensions and by what the configuration says instead.
    pub fn new(
        places: SkillPlaces,
        extensions: Arc<ExtensionsFile>,
        over: OpenKeys,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self(Arc::new(Library {
            places,
            extensions,
            over,
            scanner: Scanner::new(),
            clock,
        }))
    }

    /// All that a user has, by name, also those that are off.
    ///
    /// # Errors
    /// When the disk or the file of extensions cannot be read.
    pub async fn list(&self, user: &str) -> Result<Vec<Skill>, SkillError> {
        self.run(user, |library, user| library.all(user)).await
    }

    /// Those of a user that are on and among `choice`.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub async fn usable(&self, user: &str, choice: &SkillChoice) -> Result<Vec<Skill>, SkillError> {
        let mut skills = self.list(user).await?;
        skills.retain(|skill| skill.enabled && choice.has(skill.name()));
        Ok(skills)
    }

    /// One of a user's skills.
    ///
    /// # Errors
    /// [`SkillError::NotFound`], and as [`list`](Self::list).
    pub async fn get(&self, user: &str, name: &str) -> Result<Skill, SkillError> {
        let name = name.to_owned();
        self.run(user, move |library, user| library.one(user, &name))
            .await
    }

    /// The whole text of a skill's file.
    ///
    /// # Errors
    /// When it is gone, too long or no text.
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

    /// Switches a skill: for everybody, unless it is the user's own.
    ///
    /// # Errors
    /// As [`get`](Self::get), and when the state cannot be kept.
    pub async fn switch(&self, user: &str, name: &str, enabled: bool) -> Result<Skill, SkillError> {
        let name = name.to_owned();
        self.run(user, move |library, user| {
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

    /// Unpacks an archive into the user's own skills.
    ///
    /// # Errors
    /// [`SkillError::Archive`], [`SkillError::Exists`], and what the disk says. Nothing is there then.
    pub async fn install(&self, user: &str, archive: File) -> Result<Skill, SkillError> {
        self.run(user, move |library, user| {
            // What could not be shown afterwards is not begun.
            library.all(user)?;
            let name = library.custom(user).install(archive, &library.now())?;
            library.one_of(user, &name, Category::Custom)
        })
        .await
    }

    /// One of the user's own skills with its whole text.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn own(&self, user: &str, name: &str) -> Result<(Skill, String), SkillError> {
        let name = name.to_owned();
        self.run(user, move |library, user| library.with_text(user, &name))
            .await
    }

    /// Writes the text of one of the user's own skills.
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
        self.run(user, move |library, user| {
            library.custom(user).edit(&name, &text, &library.now())?;
            library.with_text(user, &name)
        })
        .await
    }

    /// Takes one of the user's own skills away.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn remove(&self, user: &str, name: &str) -> Result<(), SkillError> {
        let name = name.to_owned();
        self.run(user, move |library, user| {
            library.custom(user).remove(&name, &library.now())
        })
        .await
    }

    /// What was done to one of the user's own skills, also to one that is gone; the oldest first.
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

    /// Sets one of the user's own skills back to what it was before a change; a negative index counts from the end.
    ///
    /// # Errors
    /// As [`get`](Self::get), [`SkillError::Refused`] when there is nothing to go back to.
    pub async fn roll_back(
        &self,
        user: &str,
        name: &str,
        index: i64,
    ) -> Result<(Skill, String), SkillError> {
        let name = name.to_owned();
        self.run(user, move |library, user| {
            library
                .custom(user)
                .roll_back(&name, index, &library.now())?;
            library.with_text(user, &name)
        })
        .await
    }

    /// Reads everything anew next time. What changes is noticed without it.
    pub fn reload(&self) {
        self.0.scanner.forget();
    }

    async fn run<T: Send + 'static>(
        &self,
        user: &str,
        work: impl FnOnce(&Library, &str) -> Result<T, SkillError> + Send + 'static,
    ) -> Result<T, SkillError> {
        let (library, user) = (self.0.clone(), user.to_owned());
        match tokio::task::spawn_blocking(move || work(&library, &user)).await {
            Ok(done) => done,
            Err(error) => {
                tracing::error!(%error, "work on skills broke off");
                Err(Fault::Aborted.into())
            }
        }
    }
}

impl Shelves for Skills {
    /// The folders of those that are on: what is off is not there for conversations.
    fn of(&self, user_id: &str) -> Result<Shelf, Fault> {
        let skills = self.0.all(user_id).map_err(|error| match error {
            SkillError::Disk(fault) => fault,
            other => Fault::Io(std::io::Error::other(other.to_string())),
        })?;
        Ok(Shelf::new(
            skills
                .into_iter()
                .filter(|skill| skill.enabled)
                .map(|skill| skill.folder)
                .collect(),
        ))
    }
}

impl Library {
    /// Everything a user has. Of several with one name it is the last category's, and there the first by path.
    fn all(&self, user: &str) -> Result<Vec<Skill>, SkillError> {
        let shared = self.extensions.load()?.overlaid(&self.over);
        let own = self.states(user).load()?;
        let mut skills = BTreeMap::new();
        for (category, folder) in self.folders(user) {
            for skill in self
                .of_category(category, folder, &shared, &own)?
                .into_iter()
                .rev()
            {
                skills.insert(skill.name().to_owned(), skill);
            }
        }
        Ok(skills.into_values().collect())
    }

    fn of_category(
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
            let path = RelativePath::of_plain_names(&[category.dir_name(), found.way.as_str()]);
            let shelved = ShelvedFolder {
                path,
                host: folder.join(found.way.as_str()),
            };
            Skill {
                category,
                enabled: state(&found.head.name).unwrap_or(true),
                head: found.head,
                folder: shelved,
            }
        });
        Ok(skills.collect())
    }

    fn one(&self, user: &str, name: &str) -> Result<Skill, SkillError> {
        let found = self
            .all(user)?
            .into_iter()
            .find(|skill| skill.name() == name);
        found.ok_or_else(|| SkillError::NotFound(shortened(name)))
    }

    fn one_of(&self, user: &str, name: &str, category: Category) -> Result<Skill, SkillError> {
        let skill = self.one(user, name)?;
        if skill.category == category {
            Ok(skill)
        } else {
            Err(SkillError::NotFound(shortened(name)))
        }
    }

    fn with_text(&self, user: &str, name: &str) -> Result<(Skill, String), SkillError> {
        let skill = self.one_of(user, name, Category::Custom)?;
        let text = self
            .custom(user)
            .text(name)?
            .ok_or_else(|| SkillError::NotFound(shortened(name)))?;
        Ok((skill, text))
    }

    /// The folders that a user's skills lie in, those that win last.
    fn folders(&self, user: &str) -> [(Category, PathBuf); 3] {
        [
            (Category::Public, self.places.shared.join("public")),
            (Category::Legacy, self.places.shared.join("custom")),
            (Category::Custom, self.custom(user).folder().to_owned()),
        ]
    }

    fn custom(&self, user: &str) -> CustomSkills {
        CustomSkills::new(self.of_user(user).join("custom"))
    }

    /// Which of the skills are on that only this user has, or has in a way of their own.
    fn states(&self, user: &str) -> ExtensionsFile {
        ExtensionsFile::at(self.of_user(user).join("states.json"))
    }

    fn of_user(&self, user: &str) -> PathBuf {
        self.places
            .home
            .join("users")
            .join(UserDirName::from_user_id(user).as_str())
            .join("skills")
    }

    fn now(&self) -> String {
        iso(self.clock.now())
    }
}

/// A name that anybody may have sent, for a message.
fn shortened(name: &str) -> String {
    name.chars().take(80).collect()
}

#[cfg(test)]
#[path = "library_tests.rs"]
mod tests;
