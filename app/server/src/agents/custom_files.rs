//! Custom agents of users as files of the runtime home: `users/{user}/agents/{name}/config.yaml`
//! and `SOUL.md`.
//!
//! Both files change atomically: they are written to a folder that is renamed to `.next` inside the
//! agent's folder, and files in `.next` take precedence. From there they are moved to their final
//! location; an interrupted move is completed by the next change.
//!
//! Agents under `agents/{name}` are shared by all users, as in older installations, and are
//! read-only.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use harness::agents::custom::{AgentName, CustomAgent, CustomAgentError, CustomAgents};
use harness::sandbox::UserDirName;

const CONFIG: &str = "config.yaml";
const SOUL: &str = "SOUL.md";
/// Folder with committed files that are not yet moved.
const NEXT: &str = ".next";
/// Folder in which files are written before they are committed.
const STAGED: &str = ".staged";
const PROFILE: &str = "USER.md";
/// Lock file that excludes other writers, including other processes.
const LOCK: &str = ".lock";
/// Maximum size of a file, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// File store of custom agents.
#[derive(Debug, Clone)]
pub(crate) struct FileCustomAgents {
    home: PathBuf,
    /// Number of changes that this process made.
    changes: Arc<AtomicU64>,
}

impl FileCustomAgents {
    /// Creates a store below this runtime home.
    pub(crate) fn new(home: impl Into<PathBuf>) -> Self {
        Self {
            home: home.into(),
            changes: Arc::default(),
        }
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

    /// Executes a change and counts it, also if it fails. The worker counts, since the change
    /// completes even if the caller goes away.
    async fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, CustomAgentError> + Send + 'static,
    ) -> Result<T, CustomAgentError> {
        let changes = self.changes.clone();
        run_blocking(move || {
            let outcome = work();
            changes.fetch_add(1, Ordering::Release);
            outcome
        })
        .await
    }
}

#[async_trait]
impl CustomAgents for FileCustomAgents {
    fn version(&self, _user: &str) -> Option<u64> {
        Some(self.changes.load(Ordering::Acquire))
    }

    async fn get(
        &self,
        user: &str,
        name: &AgentName,
    ) -> Result<Option<CustomAgent>, CustomAgentError> {
        let (own, shared, name) = (self.agents_of(user), self.shared(), name.clone());
        run_blocking(move || {
            let _lock = lock_shared(&own)?;
            Ok(match read(&own, &name)? {
                Some(agent) => Some(agent),
                None => read(&shared, &name)?.map(as_shared),
            })
        })
        .await
    }

    async fn list(&self, user: &str) -> Result<Vec<(AgentName, CustomAgent)>, CustomAgentError> {
        let (own, shared) = (self.agents_of(user), self.shared());
        run_blocking(move || {
            let _lock = lock_shared(&own)?;
            let mut all: BTreeMap<_, _> = read_all(&shared)?
                .into_iter()
                .map(|(name, agent)| (name, as_shared(agent)))
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
        expected: Option<&CustomAgent>,
        new: Option<&CustomAgent>,
    ) -> Result<bool, CustomAgentError> {
        let (own, name) = (self.agents_of(user), name.clone());
        let (expected, new) = (expected.cloned(), new.cloned());
        self.change(move || {
            let _lock = lock_exclusive(&own)?;
            if read(&own, &name)? != expected {
                return Ok(false);
            }
            match new {
                Some(agent) => save(&own, &name, &agent)?,
                None => remove(&own, &name)?,
            }
            Ok(true)
        })
        .await
    }

    async fn default_soul(&self, user: &str) -> Result<String, CustomAgentError> {
        let (own, shared) = (self.of_user(user).join(SOUL), self.home.join(SOUL));
        run_blocking(move || {
            Ok(read_text(&own)?
                .map_or_else(|| read_text(&shared), |soul| Ok(Some(soul)))?
                .unwrap_or_default())
        })
        .await
    }

    async fn save_default_soul(&self, user: &str, soul: &str) -> Result<(), CustomAgentError> {
        let (folder, soul) = (self.of_user(user), soul.to_owned());
        self.change(move || write(&folder, SOUL, &soul)).await
    }

    async fn profile(&self, user: &str) -> Result<String, CustomAgentError> {
        let folder = self.of_user(user).join(PROFILE);
        run_blocking(move || Ok(read_text(&folder)?.unwrap_or_default())).await
    }

    async fn save_profile(&self, user: &str, profile: &str) -> Result<(), CustomAgentError> {
        let (folder, profile) = (self.of_user(user), profile.to_owned());
        self.change(move || write(&folder, PROFILE, &profile)).await
    }
}

fn as_shared(agent: CustomAgent) -> CustomAgent {
    CustomAgent {
        shared: true,
        ..agent
    }
}

/// Takes a shared lock on a user's agents; `None` if the user has no agents.
fn lock_shared(agents: &Path) -> Result<Option<File>, CustomAgentError> {
    let open = || match File::open(agents.join(LOCK)) {
        Ok(file) => file.lock_shared().map(|()| Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    open().map_err(|error| unavailable(&error))
}

/// Takes an exclusive lock on a user's agents.
fn lock_exclusive(agents: &Path) -> Result<File, CustomAgentError> {
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

/// Reads all agents below a directory. Unreadable ones are logged and skipped.
fn read_all(agents: &Path) -> Result<Vec<(AgentName, CustomAgent)>, CustomAgentError> {
    let entries = match fs::read_dir(agents) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unavailable(&error)),
    };
    // A name that is not lower case cannot be looked up.
    let names = entries.flatten().filter_map(|entry| {
        let file_name = entry.file_name();
        AgentName::parse(file_name.to_str()?)
            .ok()
            .filter(|name| file_name == name.as_str())
    });
    let read = names.filter_map(|name| match read(agents, &name) {
        Ok(agent) => Some((name, agent?)),
        Err(error) => {
            tracing::warn!(agent = %name, %error, "skipped an unreadable agent");
            None
        }
    });
    Ok(read.collect())
}

fn save(agents: &Path, name: &AgentName, agent: &CustomAgent) -> Result<(), CustomAgentError> {
    let mut keys = serde_json::to_value(agent).map_err(|error| unreadable(name, error))?;
    if let Some(keys) = keys.as_object_mut() {
        keys.insert("name".to_owned(), name.as_str().into());
    }
    let config = serde_saphyr::to_string(&keys).map_err(|error| unreadable(name, error))?;
    let folder = agents.join(name.as_str());
    let (staged, next) = (folder.join(STAGED), folder.join(NEXT));
    finish_swap(&folder)?;
    write(&staged, SOUL, &agent.soul)?;
    write(&staged, CONFIG, &config)?;
    fs::rename(staged, next).map_err(|error| unavailable(&error))?;
    // The change is committed. If the files cannot be moved now, the next change moves them.
    finish_swap(&folder).or_else(|error| {
        tracing::warn!(%error, agent = %name, "cannot move the files of an agent to their final location");
        Ok(())
    })
}

/// Completes an interrupted change.
fn finish_swap(folder: &Path) -> Result<(), CustomAgentError> {
    let ignore_missing = |result: io::Result<()>| match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unavailable(&error)),
        _ => Ok(()),
    };
    for file in [SOUL, CONFIG] {
        ignore_missing(fs::rename(folder.join(NEXT).join(file), folder.join(file)))?;
    }
    ignore_missing(fs::remove_dir_all(folder.join(NEXT)))?;
    ignore_missing(fs::remove_dir_all(folder.join(STAGED)))
}

fn remove(agents: &Path, name: &AgentName) -> Result<(), CustomAgentError> {
    let folder = agents.join(name.as_str());
    finish_swap(&folder)?;
    // Removing the configuration first removes the agent even if the rest fails.
    match fs::remove_file(folder.join(CONFIG)).and_then(|()| fs::remove_dir_all(&folder)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unavailable(&error)),
        _ => Ok(()),
    }
}

fn read(agents: &Path, name: &AgentName) -> Result<Option<CustomAgent>, CustomAgentError> {
    let folder = agents.join(name.as_str());
    let text_of = |file: &str| match read_text(&folder.join(NEXT).join(file))? {
        Some(text) => Ok(Some(text)),
        None => read_text(&folder.join(file)),
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

/// Writes a file atomically.
fn write(folder: &Path, file: &str, text: &str) -> Result<(), CustomAgentError> {
    let put = || {
        fs::create_dir_all(folder)?;
        let mut pending = tempfile::NamedTempFile::new_in(folder)?;
        pending.write_all(text.as_bytes())?;
        pending.as_file().sync_all()?;
        pending.persist(folder.join(file))?;
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

/// Logs the error and returns it without the path.
fn unavailable(error: &io::Error) -> CustomAgentError {
    tracing::error!(%error, "cannot access a file of an agent");
    CustomAgentError::Unavailable(error.kind().to_string())
}

async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CustomAgentError> + Send + 'static,
) -> Result<T, CustomAgentError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(CustomAgentError::Unavailable(error.to_string())))
}

#[cfg(test)]
#[path = "custom_files_tests.rs"]
mod tests;
