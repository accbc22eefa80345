//! `skills`: where the installation's skills lie, and how much agents are told of them.

use std::path::PathBuf;

use serde::Deserialize;

/// Skills.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SkillsConfig {
    /// The implementation of an older configuration; there is one.
    #[serde(rename = "use")]
    pub implementation: String,
    /// The folder, from the project root on; it has `public` and, from older installations, `custom`.
    pub path: Option<PathBuf>,
    /// Where agents see skills.
    pub container_path: String,
    /// Whether agents are told the names alone, and look up the rest.
    pub deferred_discovery: bool,
}

impl SkillsConfig {
    /// Where agents see skills, whatever a configuration says.
    pub const CONTAINER_PATH: &str = "/mnt/skills";
}

impl Default for SkillsConfig {
    fn default() -> Self {
        Self {
            implementation: "deerflow.skills.storage.local_skill_storage:LocalSkillStorage"
                .to_owned(),
            path: None,
            container_path: Self::CONTAINER_PATH.to_owned(),
            deferred_discovery: false,
        }
    }
}
