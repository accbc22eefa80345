//! Finding `config.yaml` where DeerFlow looks for it.

use std::path::{Path, PathBuf};

use super::environment::Environment;
use super::error::ConfigError;

const FILE_NAME: &str = "config.yaml";

/// The configuration file: `--config`, else `DEER_FLOW_CONFIG_PATH`, else `config.yaml` in the project root or its
/// parent. `Ok(None)` when nothing is named and nothing is found.
///
/// # Errors
/// [`ConfigError::NotFound`] for a named file that is missing.
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

/// The file of extensions: `DEER_FLOW_EXTENSIONS_CONFIG_PATH`, else `extensions_config.json` or `mcp_config.json` in the project root
/// or its parent, else where the first change will make it.
///
/// # Errors
/// [`ConfigError::NotFound`] for a named file that is missing.
pub fn locate_extensions(environment: &Environment) -> Result<PathBuf, ConfigError> {
    const NAMED_BY: &str = "DEER_FLOW_EXTENSIONS_CONFIG_PATH";
    const NAMES: [&str; 2] = ["extensions_config.json", "mcp_config.json"];
    if let Some(path) = environment.filled(NAMED_BY) {
        return named(environment.resolve(path), NAMED_BY);
    }
    let root = environment.project_root();
    let mut places = [Some(root.as_path()), root.parent()]
        .into_iter()
        .flatten()
        .flat_map(|folder| NAMES.map(|name| folder.join(name)));
    Ok(places
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
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_nearest_named_place_wins() {
        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().join("root");
        let elsewhere = parent.path().join("elsewhere");
        fs::create_dir_all(&root).unwrap();
        fs::create_dir_all(&elsewhere).unwrap();
        let at = |path: &Path| fs::write(path, "").unwrap();
        let found = |explicit: Option<&str>, variables: &[(&str, &str)]| {
            let environment = Environment::of(&root, variables.iter().copied());
            locate(explicit.map(Path::new), &environment)
        };

        assert_eq!(found(None, &[]).unwrap(), None);
        at(&parent.path().join("config.yaml"));
        assert_eq!(
            found(None, &[]).unwrap(),
            Some(parent.path().join("config.yaml"))
        );
        at(&root.join("config.yaml"));
        assert_eq!(found(None, &[]).unwrap(), Some(root.join("config.yaml")));

        at(&elsewhere.join("config.yaml"));
        let project = [("DEER_FLOW_PROJECT_ROOT", elsewhere.to_str().unwrap())];
        assert_eq!(
            found(None, &project).unwrap(),
            Some(elsewhere.join("config.yaml"))
        );

        at(&root.join("named.yaml"));
        let by_name = [("DEER_FLOW_CONFIG_PATH", "named.yaml")];
        assert_eq!(
            found(None, &by_name).unwrap(),
            Some(root.join("named.yaml"))
        );

        at(&root.join("flag.yaml"));
        assert_eq!(
            found(Some("flag.yaml"), &by_name).unwrap(),
            Some(root.join("flag.yaml"))
        );
    }

    #[test]
    fn extensions_are_named_or_nearest_or_made_in_the_root() {
        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().join("root");
        fs::create_dir_all(&root).unwrap();
        let found = |variables: &[(&str, &str)]| {
            locate_extensions(&Environment::of(&root, variables.iter().copied()))
        };
        assert_eq!(found(&[]).unwrap(), root.join("extensions_config.json"));
        for nearer in [
            parent.path().join("extensions_config.json"),
            root.join("mcp_config.json"),
            root.join("extensions_config.json"),
        ] {
            fs::write(&nearer, "{}").unwrap();
            assert_eq!(found(&[]).unwrap(), nearer);
        }
        fs::write(root.join("named.json"), "{}").unwrap();
        assert_eq!(
            found(&[("DEER_FLOW_EXTENSIONS_CONFIG_PATH", "named.json")]).unwrap(),
            root.join("named.json")
        );
        assert!(found(&[("DEER_FLOW_EXTENSIONS_CONFIG_PATH", "gone.json")]).is_err());
    }

    #[test]
    fn a_named_file_that_is_missing_is_fatal() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("config.yaml"), "").unwrap();
        let environment = Environment::of(root.path(), [("DEER_FLOW_CONFIG_PATH", "gone.yaml")]);
        let error = locate(None, &environment).unwrap_err().to_string();
        assert!(
            error.ends_with("gone.yaml, named by DEER_FLOW_CONFIG_PATH, does not exist"),
            "{error}"
        );
        let environment = Environment::of(root.path(), [("A", "b")]);
        let error = locate(Some(Path::new("gone.yaml")), &environment)
            .unwrap_err()
            .to_string();
        assert!(
            error.ends_with("gone.yaml, named by --config, does not exist"),
            "{error}"
        );
    }
}
