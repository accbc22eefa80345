//! Opens the skills: those of a folder of the configuration or the project, else the bundled ones.

use std::sync::Arc;

use anyhow::Context as _;
use harness::clock::Clock;
use harness::config::{AppConfig, ExtensionsFile, SkillsConfig};
use harness::config_file::{Environment, locate_extensions};
use harness::skills::{SkillFolders, Skills};

use crate::config::Settings;
use crate::skills::bundled::unpack_bundled;
use crate::skills::folder::shared_folder;

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
    let shared = match shared_folder(config, environment) {
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
