//! The environment as a value: read once, passed to whoever needs it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::error::ConfigError;

/// Environment variables and the working directory, as they were at the start.
#[derive(Clone, Default)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    working_dir: PathBuf,
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Environment").field("variables", &self.variables.len()).field("working_dir", &self.working_dir).finish()
    }
}

impl Environment {
    /// A picture of this process' environment.
    ///
    /// # Errors
    /// When the working directory cannot be told.
    #[expect(clippy::disallowed_methods, reason = "the one home of the environment")]
    pub fn from_process() -> Result<Self, ConfigError> {
        let working_dir = std::env::current_dir().map_err(|source| ConfigError::Unreadable { path: PathBuf::from("."), source })?;
        let variables = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Ok(Self::of(working_dir, variables))
    }

    /// An environment made of `variables`, for tests and embedders.
    pub fn of<K, V>(working_dir: impl Into<PathBuf>, variables: impl IntoIterator<Item = (K, V)>) -> Self
    where
        K: Into<String>,
        V: Into<String>,
    {
        Self {
            variables: variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            working_dir: working_dir.into(),
        }
    }

    /// The value of `name`; `None` when it is not set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// The value of `name`; `None` when it is not set or blank.
    pub fn filled(&self, name: &str) -> Option<&str> {
        self.get(name).map(str::trim).filter(|value| !value.is_empty())
    }

    /// Whether `name` is set to a word for yes.
    pub fn is_on(&self, name: &str) -> bool {
        self.filled(name).is_some_and(|value| parse_switch(value) == Some(true))
    }

    /// All variables whose name starts with `prefix`, with the rest of the name.
    pub fn with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> + 'a {
        self.variables.iter().filter_map(move |(name, value)| name.strip_prefix(prefix).map(|rest| (rest, value.as_str())))
    }

    /// `DEER_FLOW_PROJECT_ROOT`, or the working directory.
    pub fn project_root(&self) -> PathBuf {
        match self.filled("DEER_FLOW_PROJECT_ROOT") {
            Some(root) => self.working_dir.join(root),
            None => self.working_dir.clone(),
        }
    }

    /// `path` as seen from the working directory.
    pub fn resolve(&self, path: impl AsRef<Path>) -> PathBuf {
        self.working_dir.join(path)
    }

    /// The `.env` of the project: in its root or its parent. Reading it is the application's.
    pub fn dotenv_file(&self) -> Option<PathBuf> {
        let root = self.project_root();
        [Some(root.as_path()), root.parent()].into_iter().flatten().map(|directory| directory.join(".env")).find(|path| path.is_file())
    }
}

/// Reads a word for yes or no.
pub fn parse_switch(word: &str) -> Option<bool> {
    match word.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Some(true),
        "0" | "false" | "no" | "off" => Some(false),
        _ => None,
    }
}
