//! `skills`: location of the shared skills, and their presentation to agents.

use std::path::PathBuf;

use serde::Deserialize;

/// Location and presentation of skills.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SkillsConfig {
    /// Accepted for compatibility with older configurations; there is one implementation.
    #[serde(rename = "use")]
    pub implementation: String,
    /// Folder of skills, relative to the project root. It contains `public` and, in older
    /// installations, `custom`.
    pub path: Option<PathBuf>,
    /// Path at which agents see skills.
    pub container_path: String,
    /// Shows agents only the names of skills; agents look up the rest.
    pub deferred_discovery: bool,
}

impl SkillsConfig {
    /// Path at which agents always see skills.
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
