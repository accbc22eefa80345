//! Loads a configuration from a file, the environment and the defaults, and validates it.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use crate::config::{AppConfig, CURRENT_CONFIG_VERSION, ModelConfig, dotted};
use figment::Figment;
use figment::providers::Serialized;
use secrecy::SecretString;
use serde_json::Value;

use super::document::{Content, Node};
use super::environment::Environment;
use super::error::{ConfigError, Origin, Problem, Warning};
use super::explain::explain;
use super::file_location::FileLocation;
use super::locate::locate;
use super::overrides::Overrides;
use super::{
    extension_settings, ineffective_settings, older_store, provider_credentials, unknown_keys,
    variables,
};

/// Validated configuration with its warnings.
#[derive(Debug)]
pub struct Loaded {
    /// Configuration.
    pub config: AppConfig,
    /// Path of the file; `None` for the built-in defaults.
    pub path: Option<PathBuf>,
    /// Problems that do not prevent a start.
    pub warnings: Vec<Warning>,
    /// Hash of each section, to detect changes.
    pub fingerprints: BTreeMap<String, u64>,
    /// [`digest`] of the file's text.
    pub text_digest: Option<u64>,
}

impl Loaded {
    /// Logs the source of the configuration and its warnings.
    pub fn log(&self) {
        match &self.path {
            Some(path) => tracing::info!(path = %path.display(), "configuration loaded"),
            None => tracing::info!(
                "no config.yaml found, using the built-in defaults and the scripted model"
            ),
        }
        for warning in &self.warnings {
            tracing::warn!("{warning}");
        }
    }
}

/// Locates and loads the configuration; without a file, the defaults with the scripted model. The
/// warnings include those of the extensions file.
///
/// # Errors
/// The errors of [`load_file`], and [`ConfigError::NotFound`] for an explicitly named file.
pub fn load(explicit: Option<&Path>, environment: &Environment) -> Result<Loaded, ConfigError> {
    let mut loaded = match locate(explicit, environment)? {
        Some(path) => load_file(&path, environment)?,
        None => built_in(environment)?,
    };
    loaded
        .warnings
        .extend(extension_settings::warnings(environment));
    Ok(loaded)
}

/// Loads the configuration in `path`.
///
/// # Errors
/// An error with file, line and key if the file cannot be read, is empty, is not valid YAML or
/// contains values that are not allowed.
pub fn load_file(path: &Path, environment: &Environment) -> Result<Loaded, ConfigError> {
    parse(&read_text(path)?, path, environment)
}

/// Returns the text of `path`, for comparison before [`parse`].
///
/// # Errors
/// [`ConfigError::Unreadable`].
pub fn read_text(path: &Path) -> Result<String, ConfigError> {
    std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable {
        path: path.to_owned(),
        source,
    })
}

/// Parses `text` as the content of `path`.
///
/// # Errors
/// The errors of [`load_file`].
pub fn parse(text: &str, path: &Path, environment: &Environment) -> Result<Loaded, ConfigError> {
    let root = Node::read(text).map_err(|error| ConfigError::Syntax {
        path: path.to_owned(),
        error,
    })?;
    // A half-written or truncated file must not be mistaken for an empty configuration, which
    // selects every default.
    let mut root = root.ok_or_else(|| ConfigError::Empty {
        path: path.to_owned(),
    })?;
    let compared = unknown_keys::compare(&root, path);
    drop_null_sections(&mut root);
    let unset = variables::resolve(&mut root, path, environment);
    let problems = [compared.problems, unset.problems].concat();
    if !problems.is_empty() {
        return Err(ConfigError::Invalid(problems));
    }
    let mut warnings = [compared.warnings, unset.warnings].concat();

    let mut loaded = assemble(&root, Some(path), environment)?;
    warnings.append(&mut loaded.warnings);
    warnings.extend(version_warning(&root, path, loaded.config.config_version));
    warnings.extend(ineffective_settings::warnings(&root, path));
    sort_providers(&mut loaded.config, &root);
    let has_database = root.entry("database").is_some()
        || environment.filled("DEERFLOW_DATABASE__BACKEND").is_some();
    warnings.extend(older_store::adopt(
        &mut loaded.config,
        &root,
        path,
        has_database,
    ));
    Ok(Loaded {
        warnings,
        text_digest: Some(digest(text)),
        ..loaded
    })
}

fn built_in(environment: &Environment) -> Result<Loaded, ConfigError> {
    let empty = Node {
        place: FileLocation::default(),
        content: Content::Map(Vec::new()),
    };
    let mut loaded = assemble(&empty, None, environment)?;
    if loaded.config.models.is_empty() {
        let scripted = ModelConfig::new("scripted", "scripted", "scripted");
        loaded.config.models.push(scripted);
    }
    Ok(loaded)
}

fn assemble(
    root: &Node,
    path: Option<&Path>,
    environment: &Environment,
) -> Result<Loaded, ConfigError> {
    let overrides = Overrides::read(environment);
    let origin = |key: &[String]| match (overrides.variable_behind(key), path) {
        (Some(variable), _) => Origin::Variable(variable.to_owned()),
        (None, Some(path)) => Origin::File {
            path: path.to_owned(),
            place: root.follow(key).0.place,
        },
        (None, None) => Origin::Defaults,
    };

    let figment = Figment::from(Serialized::defaults(root.to_json())).merge(&overrides);
    let mut config: AppConfig = figment.extract_lossy().map_err(|error| {
        let (key, message) = explain(&error, root);
        ConfigError::Invalid(vec![Problem {
            origin: origin(&key),
            key: dotted(&key),
            message,
        }])
    })?;
    set_default_redis_url(&mut config, environment);
    provider_credentials::fill_in_credentials(&mut config.models, environment);

    let problems: Vec<Problem> = config
        .violations()
        .into_iter()
        .map(|violation| Problem {
            origin: origin(&violation.path),
            key: dotted(&violation.path),
            message: format!("is {}, allowed: {}", violation.found, violation.allowed),
        })
        .collect();
    if !problems.is_empty() {
        return Err(ConfigError::Invalid(problems));
    }

    Ok(Loaded {
        config,
        path: path.map(Path::to_owned),
        fingerprints: fingerprints(&figment),
        warnings: overrides.warnings,
        text_digest: None,
    })
}

/// Restores the order in which the file lists the identity providers.
fn sort_providers(config: &mut AppConfig, root: &Node) {
    let (node, found) = root.follow(&["auth", "oidc", "providers"]);
    if let (Content::Map(entries), true) = (&node.content, found) {
        let names: Vec<String> = entries.iter().map(|entry| entry.key.clone()).collect();
        config.auth.oidc.sort_providers(&names);
    }
}

fn drop_null_sections(root: &mut Node) {
    if let Content::Map(entries) = &mut root.content {
        entries.retain(|entry| !matches!(entry.value.content, Content::Null));
    }
}

fn set_default_redis_url(config: &mut AppConfig, environment: &Environment) {
    let fallback_url = environment
        .filled("DEER_FLOW_STREAM_BRIDGE_REDIS_URL")
        .or_else(|| environment.filled("REDIS_URL"));
    if let (None, Some(url)) = (&config.stream_bridge.redis_url, fallback_url) {
        config.stream_bridge.redis_url = Some(SecretString::from(url));
    }
}

fn fingerprints(figment: &Figment) -> BTreeMap<String, u64> {
    let sections: BTreeMap<String, Value> = figment.extract().unwrap_or_default();
    sections
        .into_iter()
        .map(|(name, value)| (name, digest(&value.to_string())))
        .collect()
}

/// Returns a hash of `text`, to detect changes.
pub fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

fn version_warning(root: &Node, path: &Path, version: u64) -> Option<Warning> {
    let message = match version {
        CURRENT_CONFIG_VERSION => return None,
        0 => format!(
            "is missing; `deerflow config upgrade` updates the file to {CURRENT_CONFIG_VERSION}"
        ),
        old if old < CURRENT_CONFIG_VERSION => {
            format!(
                "is {old}; `deerflow config upgrade` updates the file to {CURRENT_CONFIG_VERSION}"
            )
        }
        new => format!("is {new}, newer than version {CURRENT_CONFIG_VERSION} of this build"),
    };
    let location = root
        .entry("config_version")
        .map_or(FileLocation { line: 1, column: 1 }, |entry| entry.place);
    Some(Warning {
        origin: Origin::File {
            path: path.to_owned(),
            place: location,
        },
        key: "config_version".to_owned(),
        message,
    })
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
