//! Locates the skills: a folder of the configuration or the project, else the skills bundled in
//! this binary.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use harness::clock::Clock;
use harness::config::{AppConfig, ExtensionsFile, SkillsConfig};
use harness::config_file::{Environment, locate_extensions};
use harness::skills::{SkillFolders, Skills};

use crate::config::Settings;

/// Bundled skills, from the repository's `skills` folder.
const BUNDLED: &[(&str, &str)] = &[
    (
        "public/bootstrap/SKILL.md",
        include_str!("../../../../skills/public/bootstrap/SKILL.md"),
    ),
    (
        "public/data-analysis/SKILL.md",
        include_str!("../../../../skills/public/data-analysis/SKILL.md"),
    ),
    (
        "public/data-analysis/scripts/profile.py",
        include_str!("../../../../skills/public/data-analysis/scripts/profile.py"),
    ),
    (
        "public/deep-research/SKILL.md",
        include_str!("../../../../skills/public/deep-research/SKILL.md"),
    ),
    (
        "public/skill-creator/SKILL.md",
        include_str!("../../../../skills/public/skill-creator/SKILL.md"),
    ),
    (
        "public/skill-creator/scripts/pack.py",
        include_str!("../../../../skills/public/skill-creator/scripts/pack.py"),
    ),
];

/// Opens the file with the enabled skills and MCP servers.
pub(super) fn extensions(environment: &Environment) -> anyhow::Result<Arc<ExtensionsFile>> {
    Ok(Arc::new(ExtensionsFile::at(locate_extensions(
        environment,
    )?)))
}

/// Opens the skills of all users.
pub(super) fn open(
    config: &AppConfig,
    settings: &Settings,
    environment: &Environment,
    extensions: Arc<ExtensionsFile>,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<Skills> {
    if config.skills.container_path != SkillsConfig::CONTAINER_PATH {
        tracing::warn!(path = %config.skills.container_path, "skills.container_path has no effect: agents see skills at {}", SkillsConfig::CONTAINER_PATH);
    }
    let shared =
        match configured_folder(config, environment).or_else(|| project_skills(environment)) {
            Some(folder) => folder,
            None => unpack_bundled(&settings.home)
                .context("cannot write the bundled skills to the home directory")?,
        };
    let folders = SkillFolders {
        shared,
        home: settings.home.clone(),
    };
    Ok(Skills::new(
        folders,
        extensions,
        config.extensions.clone(),
        clock,
    ))
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

/// Writes the bundled skills to a folder below the home, replacing other content.
fn unpack_bundled(home: &Path) -> io::Result<PathBuf> {
    let folder = home.join("bundled-skills");
    let is_there = || {
        BUNDLED.iter().all(|(path, text)| {
            fs::read_to_string(folder.join(path)).is_ok_and(|written| written == *text)
        })
    };
    if is_there() {
        return Ok(folder);
    }
    fs::create_dir_all(home)?;
    let fresh = tempfile::Builder::new()
        .prefix(".bundled-skills-")
        .tempdir_in(home)?;
    for (path, text) in BUNDLED {
        let target = fresh.path().join(path);
        fs::create_dir_all(target.parent().unwrap_or(fresh.path()))?;
        fs::write(target, text)?;
    }
    let placed = match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => fs::rename(fresh.path(), &folder),
    };
    match placed {
        // Another process with the same home may have written them first.
        Err(error) if !is_there() => Err(error),
        _ => Ok(folder),
    }
}

#[cfg(test)]
mod tests {
    use harness::clock::SystemClock;

    use super::*;

    async fn names(folder: PathBuf) -> Vec<String> {
        let home = tempfile::tempdir().unwrap();
        let extensions = Arc::new(ExtensionsFile::at(
            home.path().join("extensions_config.json"),
        ));
        let folders = SkillFolders {
            shared: folder,
            home: home.path().to_owned(),
        };
        let skills = Skills::new(
            folders,
            extensions,
            AppConfig::default().extensions,
            Arc::new(SystemClock),
        );
        skills
            .list("ann")
            .await
            .unwrap()
            .iter()
            .map(|skill| skill.name().to_owned())
            .collect()
    }

    #[tokio::test]
    async fn bundled_skills_match_repository_and_are_restored() {
        let home = tempfile::tempdir().unwrap();
        let folder = unpack_bundled(home.path()).unwrap();
        let bundled = names(folder.clone()).await;
        assert_eq!(
            bundled,
            [
                "bootstrap",
                "data-analysis",
                "deep-research",
                "skill-creator"
            ]
        );
        assert_eq!(
            bundled,
            names(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../skills")).await
        );
        fs::write(folder.join("public/bootstrap/SKILL.md"), "spoilt").unwrap();
        fs::write(folder.join("public/stray.md"), "").unwrap();
        assert_eq!(names(unpack_bundled(home.path()).unwrap()).await, bundled);
        assert!(!folder.join("public/stray.md").exists());
    }

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
