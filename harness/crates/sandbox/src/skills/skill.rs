//! A skill, and the selection of skills for an agent.

use deerflow_core::config::NameRule;
use serde::{Deserialize, Serialize};

use super::frontmatter::Frontmatter;
use crate::sandbox::virtual_paths::SKILLS;
use crate::sandbox::{MountedSkill, VirtualPath};

/// File that makes a folder a skill.
pub const SKILL_FILE: &str = "SKILL.md";
/// Suffix of skill archives.
pub const ARCHIVE_ENDING: &str = ".skill";

/// Origin of a skill. Of two skills with the same name, the later category wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Category {
    /// Part of the installation.
    Public,
    /// Shared skill of an older installation; read-only.
    Legacy,
    /// Added by its user.
    Custom,
}

impl Category {
    /// Name of its folder, also beneath `/mnt/skills`.
    pub const fn dir_name(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Legacy => "legacy",
            Self::Custom => "custom",
        }
    }
}

/// A skill of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// Parsed frontmatter of its file.
    pub head: Frontmatter,
    /// Origin of the skill.
    pub category: Category,
    /// `true` if agents may use it.
    pub enabled: bool,
    /// Folder of the skill.
    pub folder: MountedSkill,
}

impl Skill {
    /// Name of the skill.
    pub fn name(&self) -> &str {
        &self.head.name
    }

    /// Reports whether its user may change it.
    pub fn is_editable(&self) -> bool {
        self.category == Category::Custom
    }

    /// Virtual path of its file.
    pub fn file(&self) -> String {
        format!("{SKILLS}/{}/{SKILL_FILE}", self.folder.path.as_str())
    }

    /// Reports whether a file belongs to the skill.
    pub fn holds(&self, path: &VirtualPath) -> bool {
        path.relative().beneath(&self.folder.path).is_some()
    }
}

/// Selection of skills for an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SkillChoice {
    /// All enabled skills.
    #[default]
    All,
    /// The enabled skills with these names.
    Only(Vec<String>),
    /// The enabled skills that a rule allows.
    By(NameRule),
}

impl SkillChoice {
    /// Reports whether a skill of this name is selected.
    pub fn has(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.iter().any(|known| known == name),
            Self::By(rule) => rule.allows(name),
        }
    }

    /// Intersects the selection with `names`; `None` leaves it unchanged.
    pub fn among(&self, names: Option<&[String]>) -> Self {
        match names {
            Some(names) => Self::Only(
                names
                    .iter()
                    .filter(|name| self.has(name))
                    .cloned()
                    .collect(),
            ),
            None => self.clone(),
        }
    }
}
