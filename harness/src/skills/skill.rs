//! A skill as it is known, and which of them an agent may have.

use serde::{Deserialize, Serialize};

use super::frontmatter::Frontmatter;
use crate::sandbox::virtual_paths::SKILLS;
use crate::sandbox::{ShelvedFolder, VirtualPath};

/// The file that makes a folder a skill.
pub const SKILL_FILE: &str = "SKILL.md";
/// What archives with skills are called.
pub const ARCHIVE_ENDING: &str = ".skill";
/// The longest name of a skill that users bring along.
const MAX_NAME_CHARS: usize = 64;

/// Where a skill comes from. Of two with one name the later kind is the one that is had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Category {
    /// It comes with the installation.
    Public,
    /// An older installation kept it for everybody; nobody changes it.
    Legacy,
    /// Its user brought it along.
    Custom,
}

impl Category {
    /// The name of its folder, in `/mnt/skills` too.
    pub const fn dir_name(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Legacy => "legacy",
            Self::Custom => "custom",
        }
    }
}

/// A skill that somebody has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// What its file says of it.
    pub head: Frontmatter,
    /// Where it comes from.
    pub category: Category,
    /// Whether agents may have it.
    pub enabled: bool,
    /// Its folder.
    pub folder: ShelvedFolder,
}

impl Skill {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.head.name
    }

    /// Whether its user may change it.
    pub fn is_editable(&self) -> bool {
        self.category == Category::Custom
    }

    /// Its file, as agents read it.
    pub fn file(&self) -> String {
        format!("{SKILLS}/{}/{SKILL_FILE}", self.folder.path.as_str())
    }

    /// Whether a file that an agent reads belongs to it.
    pub fn holds(&self, path: &VirtualPath) -> bool {
        path.relative().beneath(&self.folder.path).is_some()
    }
}

/// Which skills an agent may have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SkillChoice {
    /// All that are on.
    #[default]
    All,
    /// Of those that are on, the ones with these names.
    Only(Vec<String>),
}

impl SkillChoice {
    /// Whether a skill of this name is among them.
    pub fn has(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.iter().any(|known| known == name),
        }
    }

    /// Those of them that are among `names`, too; all of them when there are no names.
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

/// Whether a text can be the name of a skill that a user brings along: small letters, digits and single hyphens between them.
pub fn is_skill_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let hyphens_stand_between =
        !text.starts_with('-') && !text.ends_with('-') && !text.contains("--");
    !text.is_empty()
        && text.len() <= MAX_NAME_CHARS
        && text.bytes().all(is_plain)
        && hyphens_stand_between
}
