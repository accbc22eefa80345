//! Tests of the search for configuration files.

use std::fs;

use super::*;

#[test]
fn locate_prefers_explicit_then_nearest_file() {
    let parent = tempfile::tempdir().unwrap();
    let root = parent.path().join("root");
    let other = parent.path().join("elsewhere");
    fs::create_dir_all(&root).unwrap();
    fs::create_dir_all(&other).unwrap();
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

    at(&other.join("config.yaml"));
    let project = [("DEER_FLOW_PROJECT_ROOT", other.to_str().unwrap())];
    assert_eq!(
        found(None, &project).unwrap(),
        Some(other.join("config.yaml"))
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
fn locate_extensions_falls_back_to_project_root() {
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
fn missing_named_file_is_an_error() {
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
