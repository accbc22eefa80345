//! Skills as clients see them.

use serde::{Deserialize, Serialize};

use super::skill::{Category, Skill};

/// One skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillView {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Under which terms it comes, if it says so.
    pub license: Option<String>,
    /// Where it comes from.
    pub category: Category,
    /// Whether agents may have it.
    pub enabled: bool,
    /// Whether its user may change it.
    pub editable: bool,
}

impl From<&Skill> for SkillView {
    fn from(skill: &Skill) -> Self {
        Self {
            name: skill.name().to_owned(),
            description: skill.head.description.clone(),
            license: skill.head.license.clone(),
            category: skill.category,
            enabled: skill.enabled,
            editable: skill.is_editable(),
        }
    }
}

/// Skills, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillList {
    /// Each of them.
    pub skills: Vec<SkillView>,
}

impl<'a> FromIterator<&'a Skill> for SkillList {
    fn from_iter<T: IntoIterator<Item = &'a Skill>>(skills: T) -> Self {
        Self {
            skills: skills.into_iter().map(SkillView::from).collect(),
        }
    }
}

/// What an installation came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillInstalled {
    /// Always true: what fails is an error.
    pub success: bool,
    /// The skill's name.
    pub skill_name: String,
    /// The same in a sentence.
    pub message: String,
}

impl From<&Skill> for SkillInstalled {
    fn from(skill: &Skill) -> Self {
        let skill_name = skill.name().to_owned();
        Self {
            success: true,
            message: format!("Skill '{skill_name}' installed successfully"),
            skill_name,
        }
    }
}
