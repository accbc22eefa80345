//! From a file, the environment and the defaults to one checked configuration.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use crate::config::{AppConfig, CURRENT_CONFIG_VERSION, ModelConfig, dotted};
use figment::Figment;
use figment::providers::Serialized;
use secrecy::SecretString;
use serde_json::Value;

use super::document::{Content, Node, Place};
use super::environment::Environment;
use super::error::{ConfigError, Origin, Problem, Warning};
use super::explain::explain;
use super::locate::locate;
use super::overrides::Overrides;
use super::{older_store, sign_in, unknown_keys, variables, without_effect};

/// A checked configuration and what there is to say about it.
#[derive(Debug)]
pub struct Loaded {
    /// The configuration.
    pub config: AppConfig,
    /// The file it came from; `None` for the built-in defaults.
    pub path: Option<PathBuf>,
    /// What looks wrong without stopping a start.
    pub warnings: Vec<Warning>,
    /// A number per section that changes when the section does.
    pub fingerprints: BTreeMap<String, u64>,
    /// The [`digest`] of the file's text.
    pub text_digest: Option<u64>,
}

impl Loaded {
    /// Tells the log where the configuration came from and what looks wrong.
    pub fn log(&self) {
        match &self.path {
            Some(path) => tracing::info!(path = %path.display(), "configuration loaded"),
            None => tracing::info!(
                "no config.yaml found, using the built-in defaults with the scripted model"
            ),
        }
        for warning in &self.warnings {
            tracing::warn!("{warning}");
        }
    }
}

/// Finds and reads the configuration; without a file, the defaults with the scripted model.
///
/// # Errors
/// As [`load_file`], and [`ConfigError::NotFound`] for a file that is named.
pub fn load(explicit: Option<&Path>, environment: &Environment) -> Result<Loaded, ConfigError> {
    match locate(explicit, environment)? {
        Some(path) => load_file(&path, environment),
        None => built_in(environment),
    }
}

/// Reads the configuration in `path`.
///
/// # Errors
/// For a file that cannot be read, holds nothing, is no YAML or holds values that are not allowed, each with file, line and key.
pub fn load_file(path: &Path, environment: &Environment) -> Result<Loaded, ConfigError> {
    parse(&read_text(path)?, path, environment)
}

/// The text of `path`, for who compares it before [`parse`].
///
/// # Errors
/// [`ConfigError::Unreadable`].
pub fn read_text(path: &Path) -> Result<String, ConfigError> {
    std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable {
        path: path.to_owned(),
        source,
    })
}

/// Reads `text` as if it stood in `path`.
///
/// # Errors
/// As [`load_file`].
pub fn parse(text: &str, path: &Path, environment: &Environment) -> Result<Loaded, ConfigError> {
    let root = Node::read(text).map_err(|error| ConfigError::Syntax {
        path: path.to_owned(),
        error,
    })?;
    // A half-written or truncated file must not pass for one that wants every default.
    let mut root = root.ok_or_else(|| ConfigError::Empty {
        path: path.to_owned(),
    })?;
    let compared = unknown_keys::compare(&root, path);
    drop_null_sections(&mut root);
    let unset = variables::resolve(&mut root, path, environment);
    let problems = [
        compared.problems,
        unset.problems,
        without_effect::refusals(&root, path),
    ]
    .concat();
    if !problems.is_empty() {
        return Err(ConfigError::Invalid(problems));
    }
    let mut warnings = [compared.warnings, unset.warnings].concat();

    let mut loaded = assemble(&root, Some(path), environment)?;
    warnings.append(&mut loaded.warnings);
    warnings.extend(version_warning(&root, path, loaded.config.config_version));
    warnings.extend(without_effect::warnings(&root, path));
    let names_another = root.entry("database").is_some()
        || environment.filled("DEERFLOW_DATABASE__BACKEND").is_some();
    warnings.extend(older_store::adopt(
        &mut loaded.config,
        &root,
        path,
        names_another,
    ));
    Ok(Loaded {
        warnings,
        text_digest: Some(digest(text)),
        ..loaded
    })
}

fn built_in(environment: &Environment) -> Result<Loaded, ConfigError> {
    let empty = Node {
        place: Place::default(),
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
    borrow_redis_url(&mut config, environment);
    sign_in::borrow(&mut config.models, environment);

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

fn drop_null_sections(root: &mut Node) {
    if let Content::Map(entries) = &mut root.content {
        entries.retain(|entry| !matches!(entry.value.content, Content::Null));
    }
}

fn borrow_redis_url(config: &mut AppConfig, environment: &Environment) {
    let stand_in = environment
        .filled("DEER_FLOW_STREAM_BRIDGE_REDIS_URL")
        .or_else(|| environment.filled("REDIS_URL"));
    if let (None, Some(url)) = (&config.stream_bridge.redis_url, stand_in) {
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

/// A number that changes when `text` does.
pub fn digest(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

fn version_warning(root: &Node, path: &Path, version: u64) -> Option<Warning> {
    let message = match version {
        CURRENT_CONFIG_VERSION => return None,
        0 => format!(
            "is missing; `deerflow config upgrade` brings the file to {CURRENT_CONFIG_VERSION}"
        ),
        old if old < CURRENT_CONFIG_VERSION => {
            format!(
                "is {old}; `deerflow config upgrade` brings the file to {CURRENT_CONFIG_VERSION}"
            )
        }
        new => format!("is {new}, newer than the {CURRENT_CONFIG_VERSION} that this build knows"),
    };
    let place = root
        .entry("config_version")
        .map_or(Place { line: 1, column: 1 }, |entry| entry.place);
    Some(Warning {
        origin: Origin::File {
            path: path.to_owned(),
            place,
        },
        key: "config_version".to_owned(),
        message,
    })
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
