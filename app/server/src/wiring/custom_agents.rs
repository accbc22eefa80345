//! Users' agents as files of the runtime home: `users/{user}/agents/{name}/config.yaml` and `SOUL.md`.
//!
//! Agents under `agents/{name}` belong to everybody, as older installations keep them, and are only read.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use harness::agents::custom::{AgentName, CustomAgent, CustomAgentError, CustomAgents};
use harness::sandbox::UserDirName;

const CONFIG: &str = "config.yaml";
const SOUL: &str = "SOUL.md";
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
        self.home.join("users").join(UserDirName::from_user_id(user).as_str())
    }
}

#[async_trait]
impl CustomAgents for FileCustomAgents {
    async fn get(&self, user: &str, name: &AgentName) -> Result<Option<CustomAgent>, CustomAgentError> {
        let own = self.of_user(user).join("agents").join(name.as_str());
        let shared = self.home.join("agents").join(name.as_str());
        let name = name.to_string();
        off_the_runtime(move || {
            Ok(match read(&own, &name)? {
                Some(agent) => Some(agent),
                None => read(&shared, &name)?.map(|agent| CustomAgent { shared: true, ..agent }),
            })
        })
        .await
    }

    async fn save(&self, user: &str, name: &AgentName, agent: &CustomAgent) -> Result<(), CustomAgentError> {
        let place = self.of_user(user).join("agents").join(name.as_str());
        let (name, agent) = (name.to_string(), agent.clone());
        off_the_runtime(move || {
            let mut keys = serde_json::to_value(&agent).map_err(|error| unreadable(&name, error))?;
            if let Some(keys) = keys.as_object_mut() {
                keys.insert("name".to_owned(), name.clone().into());
            }
            let config = serde_saphyr::to_string(&keys).map_err(|error| unreadable(&name, error))?;
            // An agent is there once its configuration is, so that comes last.
            write(&place, SOUL, &agent.soul)?;
            write(&place, CONFIG, &config)
        })
        .await
    }

    async fn default_soul(&self, user: &str) -> Result<String, CustomAgentError> {
        let (own, shared) = (self.of_user(user).join(SOUL), self.home.join(SOUL));
        off_the_runtime(move || Ok(read_text(&own)?.map_or_else(|| read_text(&shared), |soul| Ok(Some(soul)))?.unwrap_or_default())).await
    }

    async fn save_default_soul(&self, user: &str, soul: &str) -> Result<(), CustomAgentError> {
        let (place, soul) = (self.of_user(user), soul.to_owned());
        off_the_runtime(move || write(&place, SOUL, &soul)).await
    }
}

fn read(place: &Path, name: &str) -> Result<Option<CustomAgent>, CustomAgentError> {
    let Some(config) = read_text(&place.join(CONFIG))? else { return Ok(None) };
    let keys: serde_json::Value = serde_saphyr::from_str(&config).map_err(|error| unreadable(name, error))?;
    // A file without keys is an agent without settings.
    let keys = if keys.is_null() { serde_json::json!({}) } else { keys };
    let mut agent: CustomAgent = serde_json::from_value(keys).map_err(|error| unreadable(name, error))?;
    agent.extra.shift_remove("name");
    agent.soul = read_text(&place.join(SOUL))?.unwrap_or_default();
    Ok(Some(agent))
}

fn read_text(path: &Path) -> Result<Option<String>, CustomAgentError> {
    match fs::metadata(path) {
        Ok(facts) if facts.len() > MAX_BYTES => Err(unavailable(&io::Error::from(io::ErrorKind::FileTooLarge))),
        Ok(_) => fs::read_to_string(path).map(Some).map_err(|error| unavailable(&error)),
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
        pending.persist(place.join(file))?;
        Ok(())
    };
    put().map_err(|error: io::Error| unavailable(&error))
}

fn unreadable(name: &str, error: impl std::fmt::Display) -> CustomAgentError {
    CustomAgentError::Unreadable { name: name.to_owned(), reason: error.to_string() }
}

/// What the system says, without the path.
fn unavailable(error: &io::Error) -> CustomAgentError {
    tracing::error!(%error, "a file of an agent cannot be used");
    CustomAgentError::Unavailable(error.kind().to_string())
}

async fn off_the_runtime<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CustomAgentError> + Send + 'static,
) -> Result<T, CustomAgentError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(CustomAgentError::Unavailable(error.to_string())))
}

#[cfg(test)]
mod tests {
    use harness::testkit::custom_agents;

    use super::*;

    fn fresh() -> (tempfile::TempDir, FileCustomAgents) {
        let home = tempfile::tempdir().unwrap();
        let agents = FileCustomAgents::new(home.path());
        (home, agents)
    }

    #[tokio::test]
    async fn all_promises_are_kept() {
        custom_agents::what_is_saved_is_read_as_it_was(&fresh().1).await;
        custom_agents::nobody_sees_anothers(&fresh().1).await;
    }

    #[tokio::test]
    async fn agents_of_older_installations_are_everybodys_and_bad_files_say_what_is_wrong() {
        let (home, agents) = fresh();
        let name = AgentName::parse("old").unwrap();
        write(&home.path().join("agents/old"), CONFIG, "name: old\nmodel: m\n").unwrap();
        let old = agents.get("ann", &name).await.unwrap().unwrap();
        assert!(old.shared && old.model.as_deref() == Some("m") && old.soul.is_empty());
        write(&agents.of_user("ann").join("agents/old"), CONFIG, "tool_groups: 5\n").unwrap();
        assert!(matches!(agents.get("ann", &name).await, Err(CustomAgentError::Unreadable { .. })));
        assert!(agents.get("bob", &name).await.unwrap().unwrap().shared);
    }
}
