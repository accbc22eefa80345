//! Current configuration: immutable values, replaced as a whole when the file changes and is valid.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use harness::config::{AppConfig, ConfigSource};
use harness::config_file::{ConfigError, Environment, Loaded, digest, parse, read_text};
use serde_json::Value;
use tokio::sync::watch;

/// Sections that are read only at the start.
pub const STARTUP_ONLY: [&str; 15] = [
    "plugins",
    "database",
    "run_events",
    "agent_storage",
    "stream_bridge",
    "sandbox",
    "skills",
    "extensions",
    "log_level",
    "logging",
    "scheduler",
    "mcp_tasks",
    "run_ownership",
    "store",
    "dedupe_storage",
];

/// Handle to the current configuration. Clones share it.
#[derive(Clone)]
pub struct ConfigHandle {
    inner: Arc<Inner>,
}

struct Inner {
    path: Option<PathBuf>,
    environment: Environment,
    current: watch::Sender<Arc<AppConfig>>,
    state: Mutex<State>,
}

struct State {
    /// Digest of the last evaluated text, or of the error when reading it.
    seen: Option<u64>,
    /// Fingerprints of the active sections.
    fingerprints: BTreeMap<String, u64>,
}

/// Result of a reload.
#[derive(Debug)]
#[non_exhaustive]
pub enum Reload {
    /// The file is unchanged, or there is none.
    Unchanged,
    /// A new configuration is active, except for these sections, which need a restart.
    Replaced {
        /// Changed sections that are read only at the start.
        awaiting_restart: Vec<&'static str>,
    },
    /// The file is invalid; the last valid configuration stays active.
    Refused(ConfigError),
}

impl std::fmt::Debug for ConfigHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConfigHandle")
            .field("path", &self.inner.path)
            .finish_non_exhaustive()
    }
}

impl ConfigSource for ConfigHandle {
    fn current(&self) -> Arc<AppConfig> {
        Self::current(self)
    }
}

impl ConfigHandle {
    /// Creates a handle to `loaded`.
    pub fn new(loaded: Loaded, environment: Environment) -> Self {
        let (current, _) = watch::channel(Arc::new(loaded.config));
        Self {
            inner: Arc::new(Inner {
                path: loaded.path,
                environment,
                current,
                state: Mutex::new(State {
                    seen: loaded.text_digest,
                    fingerprints: loaded.fingerprints,
                }),
            }),
        }
    }

    /// Returns the current configuration. Take it once per unit of work: the value never changes.
    pub fn current(&self) -> Arc<AppConfig> {
        Arc::clone(&self.inner.current.borrow())
    }

    /// Subscribes to configuration changes.
    pub fn subscribe(&self) -> watch::Receiver<Arc<AppConfig>> {
        self.inner.current.subscribe()
    }

    /// Returns the environment at the start of the process.
    pub fn environment(&self) -> &Environment {
        &self.inner.environment
    }

    /// Returns the configuration file; `None` for built-in defaults.
    pub fn path(&self) -> Option<&Path> {
        self.inner.path.as_deref()
    }

    /// Reads the file now. Each content is evaluated and logged only once.
    pub fn reload_now(&self) -> Reload {
        let Some(path) = &self.inner.path else {
            return Reload::Unchanged;
        };
        let mut state = self
            .inner
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner);

        let text = read_text(path);
        let seen = match &text {
            Ok(text) => digest(text),
            Err(error) => digest(&error.to_string()),
        };
        if state.seen.replace(seen) == Some(seen) {
            return Reload::Unchanged;
        }
        match text.and_then(|text| parse(&text, path, &self.inner.environment)) {
            Ok(loaded) => self.replace(&mut state, loaded),
            Err(error) => {
                tracing::error!(%error, "configuration change rejected, the last valid one stays active");
                Reload::Refused(error)
            }
        }
    }

    fn replace(&self, state: &mut State, mut loaded: Loaded) -> Reload {
        for warning in &loaded.warnings {
            tracing::warn!("{warning}");
        }
        if loaded.fingerprints == state.fingerprints {
            return Reload::Unchanged;
        }
        let awaiting_restart: Vec<&'static str> = STARTUP_ONLY
            .into_iter()
            .filter(|section| loaded.fingerprints.get(*section) != state.fingerprints.get(*section))
            .collect();
        for section in &awaiting_restart {
            match state.fingerprints.get(*section) {
                Some(&running) => loaded.fingerprints.insert((*section).to_owned(), running),
                None => loaded.fingerprints.remove(*section),
            };
        }
        restore_startup_sections(&mut loaded.config, &self.current());
        state.fingerprints = loaded.fingerprints;
        self.inner.current.send_replace(Arc::new(loaded.config));

        if awaiting_restart.is_empty() {
            tracing::info!("configuration reloaded");
        } else {
            tracing::warn!(
                sections = awaiting_restart.join(", "),
                "configuration reloaded, these sections take effect after a restart"
            );
        }
        Reload::Replaced { awaiting_restart }
    }
}

/// Restores the startup-only sections of `running` in `new`.
fn restore_startup_sections(new: &mut AppConfig, running: &AppConfig) {
    new.database = running.database.clone();
    new.run_events = running.run_events.clone();
    new.stream_bridge = running.stream_bridge.clone();
    new.sandbox = running.sandbox.clone();
    new.log_level = running.log_level;
    new.logging = running.logging.clone();
    new.run_ownership = running.run_ownership.clone();
    new.store = running.store.clone();
    new.skills = running.skills.clone();
    new.extensions = running.extensions.clone();
    for section in STARTUP_ONLY {
        match running.other.get(section) {
            Some(value) => new.other.insert(section, Value::clone(value)),
            None => new.other.remove(section),
        };
    }
}

#[cfg(test)]
#[path = "handle_tests.rs"]
mod tests;
