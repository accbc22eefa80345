//! The environment as a value: read once, passed to whoever needs it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::error::ConfigError;

/// Environment variables and the working directory, as they were at the start.
#[derive(Clone, Default)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    /// Names of variables whose values are not UTF-8.
    unreadable: BTreeSet<String>,
    working_dir: PathBuf,
}

/// Names of variables that the program reads besides those of the configuration.
const READ: &[&str] = &[
    "CONTAINER_HOST",
    "DOCKER_HOST",
    "ENVIRONMENT",
    "HOME",
    "JAVA_HOME",
    "LANG",
    "LOGNAME",
    "PATH",
    "REDIS_URL",
    "RUST_LOG",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_RUNTIME_DIR",
];
/// Beginnings of names of variables that the program reads.
const READ_PREFIXES: &[&str] = &[
    "GATEWAY_",
    "DEER_FLOW_",
    "DEERFLOW_",
    "OTEL_",
    "CLAUDE_CODE_",
    "CODEX_",
    "LC_",
    "SSL_CERT_",
];
/// Ends of names of variables that the program reads: keys and addresses of providers, and proxies.
const READ_SUFFIXES: &[&str] = &["_API_KEY", "_API_URL", "_TOKEN", "_PROXY", "_proxy"];

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Environment")
            .field("variables", &self.variables.len())
            .field("working_dir", &self.working_dir)
            .finish()
    }
}

impl Environment {
    /// A picture of this process' environment.
    ///
    /// # Errors
    /// When the working directory cannot be told, and when a variable that the program reads has a value that is not UTF-8.
    #[expect(clippy::disallowed_methods, reason = "the one home of the environment")]
    pub fn from_process() -> Result<Self, ConfigError> {
        let working_dir = std::env::current_dir().map_err(|source| ConfigError::Unreadable {
            path: PathBuf::from("."),
            source,
        })?;
        Self::from_raw(working_dir, std::env::vars_os())
    }

    /// An environment made of variables as the system gives them. Names that are not UTF-8 are left out: nothing asks for them.
    ///
    /// # Errors
    /// [`ConfigError::NotUtf8`] for a variable that the program reads. Others are errors where the configuration refers to them.
    pub fn from_raw(
        working_dir: impl Into<PathBuf>,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, ConfigError> {
        let mut environment = Self {
            working_dir: working_dir.into(),
            ..Self::default()
        };
        for (name, value) in variables {
            let Ok(name) = name.into_string() else {
                continue;
            };
            match value.into_string() {
                Ok(value) => {
                    environment.variables.insert(name, value);
                }
                Err(_) if is_read(&name) => return Err(ConfigError::NotUtf8 { variable: name }),
                Err(_) => {
                    environment.unreadable.insert(name);
                }
            }
        }
        Ok(environment)
    }

    /// An environment made of `variables`, for tests and embedders.
    pub fn of<K, V>(
        working_dir: impl Into<PathBuf>,
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> Self
    where
        K: Into<String>,
        V: Into<String>,
    {
        Self {
            variables: variables
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            working_dir: working_dir.into(),
            unreadable: BTreeSet::new(),
        }
    }

    /// Whether `name` is set to a value that is not UTF-8.
    pub fn is_unreadable(&self, name: &str) -> bool {
        self.unreadable.contains(name)
    }

    /// The value of `name`; `None` when it is not set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// The value of `name`; `None` when it is not set or blank.
    pub fn filled(&self, name: &str) -> Option<&str> {
        self.get(name)
            .map(str::trim)
            .filter(|value| !value.is_empty())
    }

    /// Whether `name` is set to a word for yes.
    pub fn is_on(&self, name: &str) -> bool {
        self.filled(name)
            .is_some_and(|value| parse_switch(value) == Some(true))
    }

    /// All variables whose name starts with `prefix`, with the rest of the name.
    pub fn with_prefix<'a>(
        &'a self,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> + 'a {
        self.variables.iter().filter_map(move |(name, value)| {
            name.strip_prefix(prefix).map(|rest| (rest, value.as_str()))
        })
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
        [Some(root.as_path()), root.parent()]
            .into_iter()
            .flatten()
            .map(|directory| directory.join(".env"))
            .find(|path| path.is_file())
    }
}

fn is_read(name: &str) -> bool {
    READ.contains(&name)
        || READ_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || READ_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

/// Reads a word for yes or no.
pub fn parse_switch(word: &str) -> Option<bool> {
    match word.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Some(true),
        "0" | "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    fn raw(name: &str, value: &[u8]) -> Result<Environment, ConfigError> {
        Environment::from_raw(
            "/",
            [(OsString::from(name), OsString::from_vec(value.to_vec()))],
        )
    }

    #[test]
    fn a_value_that_is_not_utf8_is_an_error_with_its_name() {
        for name in [
            "GATEWAY_PORT",
            "DEER_FLOW_HOME",
            "DEERFLOW_DATABASE__BACKEND",
            "OPENAI_API_KEY",
            "REDIS_URL",
            "HTTPS_PROXY",
            "PATH",
        ] {
            let error = raw(name, b"x\xff").expect_err("a refusal").to_string();
            assert_eq!(
                error,
                format!("environment variable {name} has a value that is not UTF-8")
            );
        }
        let other = raw("LESSOPEN", b"x\xff").expect("an environment");
        assert!(
            other.is_unreadable("LESSOPEN")
                && other.get("LESSOPEN").is_none()
                && !other.is_unreadable("PATH")
        );
    }
}
