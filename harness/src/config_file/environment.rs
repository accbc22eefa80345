//! Snapshot of the environment, passed explicitly to its users.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::error::ConfigError;

/// Environment variables and working directory at the start of the process.
#[derive(Clone, Default)]
pub struct Environment {
    variables: BTreeMap<String, String>,
    /// Names of variables whose values are not UTF-8.
    unreadable: BTreeSet<String>,
    working_dir: PathBuf,
}

/// Names of variables that the program reads, other than overrides of the configuration.
const READ_NAMES: &[&str] = &[
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
/// Name prefixes of variables that the program reads.
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
/// Name suffixes of variables that the program reads: keys and addresses of providers, and proxies.
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
    /// Takes a snapshot of this process' environment.
    ///
    /// # Errors
    /// An error if the working directory cannot be determined, or a variable that the program reads
    /// has a value that is not UTF-8.
    #[expect(
        clippy::disallowed_methods,
        reason = "the only function that reads the process environment"
    )]
    pub fn from_process() -> Result<Self, ConfigError> {
        let working_dir = std::env::current_dir().map_err(|source| ConfigError::Unreadable {
            path: PathBuf::from("."),
            source,
        })?;
        Self::from_raw(working_dir, std::env::vars_os())
    }

    /// Creates an environment from variables as the operating system represents them. Names that
    /// are not UTF-8 are omitted, since they are never looked up.
    ///
    /// # Errors
    /// [`ConfigError::NotUtf8`] for a variable that the program reads. For other variables it is
    /// reported where the configuration refers to them.
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

    /// Creates an environment from `variables`, for tests and embedders.
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

    /// `true` if `name` is set to a value that is not UTF-8.
    pub fn is_unreadable(&self, name: &str) -> bool {
        self.unreadable.contains(name)
    }

    /// Returns the value of `name`; `None` if it is not set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// Returns the value of `name`; `None` if it is not set or blank.
    pub fn filled(&self, name: &str) -> Option<&str> {
        self.get(name)
            .map(str::trim)
            .filter(|value| !value.is_empty())
    }

    /// `true` if `name` is set to an affirmative word.
    pub fn is_on(&self, name: &str) -> bool {
        self.filled(name)
            .is_some_and(|value| parse_switch(value) == Some(true))
    }

    /// Returns the variables with this name prefix, as pairs of the name without the prefix and the
    /// value.
    pub fn with_prefix<'a>(
        &'a self,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> + 'a {
        self.variables.iter().filter_map(move |(name, value)| {
            name.strip_prefix(prefix).map(|rest| (rest, value.as_str()))
        })
    }

    /// Returns `DEER_FLOW_PROJECT_ROOT`, or the working directory.
    pub fn project_root(&self) -> PathBuf {
        match self.filled("DEER_FLOW_PROJECT_ROOT") {
            Some(root) => self.working_dir.join(root),
            None => self.working_dir.clone(),
        }
    }

    /// Resolves `path` against the working directory.
    pub fn resolve(&self, path: impl AsRef<Path>) -> PathBuf {
        self.working_dir.join(path)
    }

    /// Returns the path of the project's `.env` file, in the project root or its parent. The
    /// application reads the file.
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
    READ_NAMES.contains(&name)
        || READ_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || READ_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

/// Parses an affirmative or negative word.
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
    fn non_utf8_variable_error_names_it() {
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
