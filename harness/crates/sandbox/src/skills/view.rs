//! Skills as clients see them.

use serde::{Deserialize, Serialize};

use super::skill::{Category, Skill};

/// A skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillView {
    /// Name of the skill.
    pub name: String,
    /// Description of when to use the skill.
    pub description: String,
    /// License, if stated.
    pub license: Option<String>,
    /// Origin of the skill.
    pub category: Category,
    /// `true` if agents may use it.
    pub enabled: bool,
    /// `true` if its user may change it.
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

/// A list of skills, sorted by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillList {
    /// The skills.
    pub skills: Vec<SkillView>,
}

impl<'a> FromIterator<&'a Skill> for SkillList {
    fn from_iter<T: IntoIterator<Item = &'a Skill>>(skills: T) -> Self {
        Self {
            skills: skills.into_iter().map(SkillView::from).collect(),
        }
    }
}

/// Result of an installation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillInstalled {
    /// Always true: a failure is an error response.
    pub success: bool,
    /// Name of the installed skill.
    pub skill_name: String,
    /// Human-readable result.
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
