//! Locates `config.yaml` and the extensions file in the same order as DeerFlow.

use std::path::{Path, PathBuf};

use super::environment::Environment;
use super::error::ConfigError;

const FILE_NAME: &str = "config.yaml";

/// Returns the path of the configuration file: `--config`, else `DEER_FLOW_CONFIG_PATH`, else
/// `config.yaml` in the project root or its parent. `Ok(None)` if no file is named and none exists.
///
/// # Errors
/// [`ConfigError::NotFound`] for an explicitly named file that does not exist.
pub fn locate(
    explicit: Option<&Path>,
    environment: &Environment,
) -> Result<Option<PathBuf>, ConfigError> {
    if let Some(path) = explicit {
        return named(environment.resolve(path), "--config").map(Some);
    }
    if let Some(path) = environment.filled("DEER_FLOW_CONFIG_PATH") {
        return named(environment.resolve(path), "DEER_FLOW_CONFIG_PATH").map(Some);
    }
    let root = environment.project_root();
    Ok([Some(root.as_path()), root.parent()]
        .into_iter()
        .flatten()
        .map(|directory| directory.join(FILE_NAME))
        .find(|path| path.is_file()))
}

/// Returns the path of the extensions file: `DEER_FLOW_EXTENSIONS_CONFIG_PATH`, else
/// `extensions_config.json` or `mcp_config.json` in the project root or its parent, else the path
/// at which the first change creates the file.
///
/// # Errors
/// [`ConfigError::NotFound`] for an explicitly named file that does not exist.
pub fn locate_extensions(environment: &Environment) -> Result<PathBuf, ConfigError> {
    const NAMED_BY: &str = "DEER_FLOW_EXTENSIONS_CONFIG_PATH";
    const NAMES: [&str; 2] = ["extensions_config.json", "mcp_config.json"];
    if let Some(path) = environment.filled(NAMED_BY) {
        return named(environment.resolve(path), NAMED_BY);
    }
    let root = environment.project_root();
    let mut candidates = [Some(root.as_path()), root.parent()]
        .into_iter()
        .flatten()
        .flat_map(|folder| NAMES.map(|name| folder.join(name)));
    Ok(candidates
        .find(|path| path.is_file())
        .unwrap_or_else(|| root.join(NAMES[0])))
}

fn named(path: PathBuf, named_by: &'static str) -> Result<PathBuf, ConfigError> {
    if path.is_file() {
        Ok(path)
    } else {
        Err(ConfigError::NotFound { path, named_by })
    }
}

#[cfg(test)]
#[path = "locate_tests.rs"]
mod tests;
