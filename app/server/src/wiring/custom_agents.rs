//! Users' agents as files of the runtime home: `users/{user}/agents/{name}/config.yaml` and `SOUL.md`.
//!
//! The two change as one: both are written to `.next` within the agent's folder, which appears in one step, and what lies there is what
//! the agent is. From there they go to their places, and what is cut short then goes on with the next change.
//!
//! Agents under `agents/{name}` belong to everybody, as older installations keep them, and are only read.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use harness::agents::custom::{AgentName, CustomAgent, CustomAgentError, CustomAgents};
use harness::sandbox::UserDirName;

const CONFIG: &str = "config.yaml";
const SOUL: &str = "SOUL.md";
/// The folder with files that are on their way to their places.
const NEXT: &str = ".next";
/// The folder in which that one comes to be.
const STAGED: &str = ".staged";
const PROFILE: &str = "USER.md";
/// Who changes a user's agents holds this file's lock, so that also other processes wait.
const LOCK: &str = ".lock";
/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// Keeps users' agents in files.
#[derive(Debug, Clone)]
pub(super) struct FileCustomAgents {
    home: PathBuf,
}

impl FileCustomAgents {
    /// Agents below this runtime home.
    pub(super) fn new(home: impl Into<PathBuf>) -> Self {
        Self { home: home.into() }
    }

    fn of_user(&self, user: &str) -> PathBuf {
        self.home
            .join("users")
            .join(UserDirName::from_user_id(user).as_str())
    }

    fn agents_of(&self, user: &str) -> PathBuf {
        self.of_user(user).join("agents")
    }

    fn shared(&self) -> PathBuf {
        self.home.join("agents")
    }
}

#[async_trait]
impl CustomAgents for FileCustomAgents {
    async fn get(
        &self,
        user: &str,
        name: &AgentName,
    ) -> Result<Option<CustomAgent>, CustomAgentError> {
        let (own, shared, name) = (self.agents_of(user), self.shared(), name.clone());
        off_the_runtime(move || {
            let _seen_whole = shut_for_reading(&own)?;
            Ok(match read(&own, &name)? {
                Some(agent) => Some(agent),
                None => read(&shared, &name)?.map(everybodys),
            })
        })
        .await
    }

    async fn list(&self, user: &str) -> Result<Vec<(AgentName, CustomAgent)>, CustomAgentError> {
        let (own, shared) = (self.agents_of(user), self.shared());
        off_the_runtime(move || {
            let _seen_whole = shut_for_reading(&own)?;
            let mut all: BTreeMap<_, _> = read_all(&shared)?
                .into_iter()
                .map(|(name, agent)| (name, everybodys(agent)))
                .collect();
            all.extend(read_all(&own)?);
            Ok(all.into_iter().collect())
        })
        .await
    }

    async fn swap(
        &self,
        user: &str,
        name: &AgentName,
        held: Option<&CustomAgent>,
        new: Option<&CustomAgent>,
    ) -> Result<bool, CustomAgentError> {
        let (own, name) = (self.agents_of(user), name.clone());
        let (held, new) = (held.cloned(), new.cloned());
        off_the_runtime(move || {
            let _alone = shut_for_writing(&own)?;
            if read(&own, &name)? != held {
                return Ok(false);
            }
            match new {
                Some(agent) => keep(&own, &name, &agent)?,
                None => remove(&own, &name)?,
            }
            Ok(true)
        })
        .await
    }

    async fn default_soul(&self, user: &str) -> Result<String, CustomAgentError> {
        let (own, shared) = (self.of_user(user).join(SOUL), self.home.join(SOUL));
        off_the_runtime(move || {
            Ok(read_text(&own)?
                .map_or_else(|| read_text(&shared), |soul| Ok(Some(soul)))?
                .unwrap_or_default())
        })
        .await
    }

    async fn save_default_soul(&self, user: &str, soul: &str) -> Result<(), CustomAgentError> {
        let (place, soul) = (self.of_user(user), soul.to_owned());
        off_the_runtime(move || write(&place, SOUL, &soul)).await
    }

    async fn profile(&self, user: &str) -> Result<String, CustomAgentError> {
        let place = self.of_user(user).join(PROFILE);
        off_the_runtime(move || Ok(read_text(&place)?.unwrap_or_default())).await
    }

    async fn save_profile(&self, user: &str, profile: &str) -> Result<(), CustomAgentError> {
        let (place, profile) = (self.of_user(user), profile.to_owned());
        off_the_runtime(move || write(&place, PROFILE, &profile)).await
    }
}

fn everybodys(agent: CustomAgent) -> CustomAgent {
    CustomAgent {
        shared: true,
        ..agent
    }
}

/// Nobody changes these agents while the file is held. Where there are no agents there is nothing to hold.
fn shut_for_reading(agents: &Path) -> Result<Option<File>, CustomAgentError> {
    let open = || match File::open(agents.join(LOCK)) {
        Ok(file) => file.lock_shared().map(|()| Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    open().map_err(|error| unavailable(&error))
}

/// Nobody else reads or changes these agents while the file is held.
fn shut_for_writing(agents: &Path) -> Result<File, CustomAgentError> {
    let open = || {
        fs::create_dir_all(agents)?;
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(agents.join(LOCK))?;
        file.lock()?;
        Ok(file)
    };
    open().map_err(|error: io::Error| unavailable(&error))
}

/// All agents below a directory; those that cannot be read are told of in the log.
fn read_all(agents: &Path) -> Result<Vec<(AgentName, CustomAgent)>, CustomAgentError> {
    let entries = match fs::read_dir(agents) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unavailable(&error)),
    };
    // A directory that is not in small letters is found by nobody.
    let names = entries.flatten().filter_map(|entry| {
        let file_name = entry.file_name();
        AgentName::parse(file_name.to_str()?)
            .ok()
            .filter(|name| file_name == name.as_str())
    });
    let read = names.filter_map(|name| match read(agents, &name) {
        Ok(agent) => Some((name, agent?)),
        Err(error) => {
            tracing::warn!(agent = %name, %error, "an agent is left out of the list");
            None
        }
    });
    Ok(read.collect())
}

fn keep(agents: &Path, name: &AgentName, agent: &CustomAgent) -> Result<(), CustomAgentError> {
    let mut keys = serde_json::to_value(agent).map_err(|error| unreadable(name, error))?;
    if let Some(keys) = keys.as_object_mut() {
        keys.insert("name".to_owned(), name.as_str().into());
    }
    let config = serde_saphyr::to_string(&keys).map_err(|error| unreadable(name, error))?;
    let place = agents.join(name.as_str());
    let (staged, next) = (place.join(STAGED), place.join(NEXT));
    settle(&place)?;
    write(&staged, SOUL, &agent.soul)?;
    write(&staged, CONFIG, &config)?;
    fs::rename(staged, next).map_err(|error| unavailable(&error))?;
    // The agent is kept. Where the rest of the way is barred, it goes on with the next change.
    settle(&place).or_else(|error| {
        tracing::warn!(%error, agent = %name, "the files of an agent stay in a folder of their own");
        Ok(())
    })
}

/// Ends what a change has left that was cut short.
fn settle(place: &Path) -> Result<(), CustomAgentError> {
    let there = |done: io::Result<()>| match done {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unavailable(&error)),
        _ => Ok(()),
    };
    for file in [SOUL, CONFIG] {
        there(fs::rename(place.join(NEXT).join(file), place.join(file)))?;
    }
    there(fs::remove_dir_all(place.join(NEXT)))?;
    there(fs::remove_dir_all(place.join(STAGED)))
}

fn remove(agents: &Path, name: &AgentName) -> Result<(), CustomAgentError> {
    let place = agents.join(name.as_str());
    settle(&place)?;
    // Without its configuration it is no agent any more, whatever becomes of the rest.
    match fs::remove_file(place.join(CONFIG)).and_then(|()| fs::remove_dir_all(&place)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unavailable(&error)),
        _ => Ok(()),
    }
}

fn read(agents: &Path, name: &AgentName) -> Result<Option<CustomAgent>, CustomAgentError> {
    let place = agents.join(name.as_str());
    let text_of = |file: &str| match read_text(&place.join(NEXT).join(file))? {
        Some(text) => Ok(Some(text)),
        None => read_text(&place.join(file)),
    };
    let Some(config) = text_of(CONFIG)? else {
        return Ok(None);
    };
    let keys: serde_json::Value =
        serde_saphyr::from_str(&config).map_err(|error| unreadable(name, error))?;
    // A file without keys is an agent without settings.
    let keys = if keys.is_null() {
        serde_json::json!({})
    } else {
        keys
    };
    let mut agent: CustomAgent =
        serde_json::from_value(keys).map_err(|error| unreadable(name, error))?;
    agent.extra.shift_remove("name");
    agent.soul = text_of(SOUL)?.unwrap_or_default();
    Ok(Some(agent))
}

fn read_text(path: &Path) -> Result<Option<String>, CustomAgentError> {
    match fs::metadata(path) {
        Ok(facts) if facts.len() > MAX_BYTES => {
            Err(unavailable(&io::Error::from(io::ErrorKind::FileTooLarge)))
        }
        Ok(_) => fs::read_to_string(path)
            .map(Some)
            .map_err(|error| unavailable(&error)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unavailable(&error)),
    }
}

/// Puts a file in its place in one step.
fn write(place: &Path, file: &str, text: &str) -> Result<(), CustomAgentError> {
    let put = || {
        fs::create_dir_all(place)?;
        let mut pending = tempfile::NamedTempFile::new_in(place)?;
        pending.write_all(text.as_bytes())?;
        pending.as_file().sync_all()?;
        pending.persist(place.join(file))?;
        Ok(())
    };
    put().map_err(|error: io::Error| unavailable(&error))
}

fn unreadable(name: &AgentName, error: impl std::fmt::Display) -> CustomAgentError {
    CustomAgentError::Unreadable {
        name: name.to_string(),
        reason: error.to_string(),
    }
}

/// What the system says, without the path.
fn unavailable(error: &io::Error) -> CustomAgentError {
    tracing::error!(%error, "a file of an agent cannot be used");
    CustomAgentError::Unavailable(error.kind().to_string())
}

async fn off_the_runtime<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CustomAgentError> + Send + 'static,
) -> Result<T, CustomAgentError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(CustomAgentError::Unavailable(error.to_string())))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use harness::testkit::custom_agents;

    use super::*;

    fn fresh() -> (tempfile::TempDir, FileCustomAgents) {
        let home = tempfile::tempdir().unwrap();
        let agents = FileCustomAgents::new(home.path());
        (home, agents)
    }

    #[tokio::test]
    async fn all_promises_are_kept() {
        let (_home, agents) = fresh();
        custom_agents::what_is_saved_is_read_as_it_was(&agents).await;
        let (_home, agents) = fresh();
        custom_agents::nobody_sees_anothers(&agents).await;
        let (_home, agents) = fresh();
        custom_agents::all_are_listed_by_name(&agents).await;
        let (_home, agents) = fresh();
        custom_agents::no_change_is_lost(Arc::new(agents)).await;
    }

    #[tokio::test]
    async fn a_change_that_was_cut_short_is_seen_whole_and_ends_with_the_next() {
        let (_home, agents) = fresh();
        let name = AgentName::parse("scout").unwrap();
        let agent = |text: &str| CustomAgent {
            soul: text.to_owned(),
            description: text.to_owned(),
            ..CustomAgent::default()
        };
        assert_eq!(
            agents.swap("ann", &name, None, Some(&agent("old"))).await,
            Ok(true)
        );
        let place = agents.agents_of("ann").join("scout");
        fs::write(place.join("memory.json"), "{}").unwrap();
        // Cut short before the change counts.
        write(&place.join(STAGED), SOUL, "new").unwrap();
        assert_eq!(agents.get("ann", &name).await, Ok(Some(agent("old"))));
        // And after it does: with both files still on their way, and with one of them.
        write(&place.join(STAGED), CONFIG, "description: new\n").unwrap();
        fs::rename(place.join(STAGED), place.join(NEXT)).unwrap();
        assert_eq!(agents.get("ann", &name).await, Ok(Some(agent("new"))));
        fs::rename(place.join(NEXT).join(SOUL), place.join(SOUL)).unwrap();
        assert_eq!(agents.get("ann", &name).await, Ok(Some(agent("new"))));
        assert_eq!(
            agents
                .swap("ann", &name, Some(&agent("new")), Some(&agent("newer")))
                .await,
            Ok(true)
        );
        assert_eq!(agents.get("ann", &name).await, Ok(Some(agent("newer"))));
        let mut files: Vec<_> = fs::read_dir(&place)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        files.sort();
        assert_eq!(
            files,
            [SOUL, CONFIG, "memory.json"],
            "and nothing else that lies there is touched"
        );
        assert_eq!(
            agents.swap("ann", &name, Some(&agent("newer")), None).await,
            Ok(true)
        );
        assert!(!place.exists());
    }

    #[tokio::test]
    async fn agents_of_older_installations_are_everybodys_and_bad_files_say_what_is_wrong() {
        let (home, agents) = fresh();
        let name = AgentName::parse("old").unwrap();
        write(
            &home.path().join("agents/old"),
            CONFIG,
            "name: old\nmodel: m\n",
        )
        .unwrap();
        let old = agents.get("ann", &name).await.unwrap().unwrap();
        assert!(old.shared && old.model.as_deref() == Some("m") && old.soul.is_empty());
        let taken = CustomAgent {
            shared: false,
            ..old.clone()
        };
        assert_eq!(
            agents.swap("ann", &name, Some(&taken), None).await,
            Ok(false),
            "what is everybody's is not one's own"
        );
        write(
            &agents.of_user("ann").join("agents/old"),
            CONFIG,
            "tool_groups: 5\n",
        )
        .unwrap();
        assert!(matches!(
            agents.get("ann", &name).await,
            Err(CustomAgentError::Unreadable { .. })
        ));
        assert!(agents.get("bob", &name).await.unwrap().unwrap().shared);
        assert_eq!(agents.list("bob").await, Ok(vec![(name, old)]));
    }
}
