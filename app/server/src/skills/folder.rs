//! Folder of the shared skills: that of the configuration, else that of the project.

use std::path::PathBuf;

use harness::config::AppConfig;
use harness::config_file::Environment;

/// Returns the folder of the shared skills, if there is one.
pub(crate) fn shared_folder(config: &AppConfig, environment: &Environment) -> Option<PathBuf> {
    configured_folder(config, environment).or_else(|| project_skills(environment))
}

/// Returns the folder named by the configuration or the environment; if it does not exist, there
/// are no shared skills.
fn configured_folder(config: &AppConfig, environment: &Environment) -> Option<PathBuf> {
    let root = environment.project_root();
    let path = config
        .skills
        .path
        .as_ref()
        .filter(|path| !path.as_os_str().is_empty())
        .map(|path| root.join(path));
    let folder = path.or_else(|| {
        environment
            .filled("DEER_FLOW_SKILLS_PATH")
            .map(|path| environment.resolve(path))
    })?;
    if !folder.is_dir() {
        tracing::warn!(folder = %folder.display(), "the skills folder does not exist: only skills of users are available");
    }
    Some(folder)
}

/// Returns the `skills` folder in the project root or its parent, if there is one.
fn project_skills(environment: &Environment) -> Option<PathBuf> {
    let root = environment.project_root();
    let mut folders = [Some(root.as_path()), root.parent()]
        .into_iter()
        .flatten()
        .map(|folder| folder.join("skills"));
    folders.find(|folder| folder.join("public").is_dir())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn configured_folder_precedes_project_folder() {
        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().join("root");
        fs::create_dir_all(parent.path().join("skills/public")).unwrap();
        fs::create_dir_all(&root).unwrap();
        let variables = [("DEER_FLOW_SKILLS_PATH", "elsewhere")];
        let (bare, with_variable) = (
            Environment::of(&root, [("A", "b")]),
            Environment::of(&root, variables),
        );
        let mut config = AppConfig::default();
        assert_eq!(configured_folder(&config, &bare), None);
        assert_eq!(project_skills(&bare), Some(parent.path().join("skills")));
        assert_eq!(
            configured_folder(&config, &with_variable),
            Some(root.join("elsewhere"))
        );
        config.skills.path = Some("mine".into());
        assert_eq!(
            configured_folder(&config, &with_variable),
            Some(root.join("mine"))
        );
    }
}
