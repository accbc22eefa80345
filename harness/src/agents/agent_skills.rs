//! Skills of an agent, and the section of its system prompt that describes them.

use crate::messages::marks::escaped;
use crate::runtime::actor_context::effective_user_id;
use crate::skills::{Category, Skill, SkillChoice, SkillError, Skills};

/// Snapshot of the skills that an agent may use.
#[derive(Debug, Clone, Default)]
pub struct AgentSkills {
    choice: SkillChoice,
    enabled: Vec<Skill>,
    disabled: Vec<Skill>,
}

impl AgentSkills {
    /// Loads the skills of this selection for the current actor.
    ///
    /// # Errors
    /// The errors of [`Skills::list`].
    pub(super) async fn load(skills: &Skills, choice: SkillChoice) -> Result<Self, SkillError> {
        let all = skills.list(&effective_user_id()).await?;
        let (enabled, disabled) = all
            .into_iter()
            .filter(|skill| choice.has(skill.name()))
            .partition(|skill| skill.enabled);
        Ok(Self {
            choice,
            enabled,
            disabled,
        })
    }

    /// Creates the skills of an agent whose skills cannot be read.
    pub(super) fn unreadable(choice: SkillChoice) -> Self {
        Self {
            choice,
            ..Self::default()
        }
    }

    /// Restricts the skills to these names, for a subagent; `None` selects all.
    pub(crate) fn among(&self, names: Option<&[String]>) -> Self {
        let choice = self.choice.among(names);
        let restricted = |skills: &[Skill]| {
            skills
                .iter()
                .filter(|skill| choice.has(skill.name()))
                .cloned()
                .collect()
        };
        Self {
            enabled: restricted(&self.enabled),
            disabled: restricted(&self.disabled),
            choice,
        }
    }

    /// Returns the selection.
    pub(crate) fn choice(&self) -> &SkillChoice {
        &self.choice
    }

    /// `true` if no skill is enabled.
    pub(crate) fn is_empty(&self) -> bool {
        self.enabled.is_empty()
    }

    /// Builds the section of the system prompt; `None` if no skill is enabled. With `deferred`, the
    /// section lists names only.
    pub(crate) fn section(&self, deferred: bool) -> Option<String> {
        (!self.is_empty()).then(|| section(&self.enabled, &self.disabled, deferred))
    }
}

fn section(enabled: &[Skill], disabled: &[Skill], deferred: bool) -> String {
    let find = if deferred {
        "The list below has their names alone: look up with `describe_skill` what may fit the request, before you begin."
    } else {
        "Before you begin, hold the request against the list below."
    };
    let list: Vec<String> = enabled
        .iter()
        .map(|skill| {
            if deferred {
                format!("- {}", escaped(skill.name()))
            } else {
                entry(skill)
            }
        })
        .collect();
    let unused = match disabled {
        [] => String::new(),
        disabled => {
            let names: Vec<String> = disabled.iter().map(|skill| escaped(skill.name())).collect();
            format!(
                "\nSwitched off by the user, not to be used: {}.",
                names.join(", ")
            )
        }
    };
    format!(
        "<skill_system>\n\
         Skills are folders beneath /mnt/skills that say how a certain kind of work is done well. You read them and cannot change them.\n\
         - {find} If a skill fits, read its file with `read_file` first and work by it; it counts more than your own habits.\n\
         - Read the further files of its folder when it sends you there, not in advance. Its scripts can be run where they lie.\n\
         - A message that begins with `/` and a skill's name calls for that skill: its file stands before the message.\n\
         - If none fits, work without. Do not speak of skills unless you are asked.\n\
         <available_skills>\n{}\n</available_skills>{unused}\n\
         </skill_system>",
        list.join("\n")
    )
}

fn entry(skill: &Skill) -> String {
    let label = match skill.category {
        Category::Public => "built in",
        Category::Legacy => "shared, read-only",
        Category::Custom => "the user's own",
    };
    format!(
        "- {} ({label}): {}\n  {}",
        escaped(skill.name()),
        escaped(&skill.head.description),
        escaped(&skill.file())
    )
}
