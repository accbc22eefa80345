//! Tool policy of active skills. Pure.

use std::collections::BTreeSet;

use super::skill::Skill;

/// Tools that are always allowed: skills could not be read without them.
const ALWAYS: [&str; 4] = [
    "describe_skill",
    "read_file",
    "review_skill_package",
    "tool_search",
];

/// Tools that the active skills allow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ToolPolicy {
    /// No active skill restricts tools.
    #[default]
    Any,
    /// The tools named by skills, and those that are always allowed.
    Only(BTreeSet<String>),
}

impl ToolPolicy {
    /// Combines the active skills. A skill that no longer exists (`None`) allows nothing; a skill
    /// without a list of tools neither restricts nor extends the policy.
    pub fn of<'a>(skills: impl IntoIterator<Item = Option<&'a Skill>>) -> Self {
        let mut policy = Self::Any;
        for skill in skills {
            let named = match skill {
                None => Some(&[][..]),
                Some(skill) => skill.head.allowed_tools.as_deref(),
            };
            let Some(named) = named else { continue };
            if policy == Self::Any {
                policy = Self::Only(BTreeSet::new());
            }
            if let Self::Only(allowed) = &mut policy {
                allowed.extend(named.iter().cloned());
            }
        }
        policy
    }

    /// Allows only the tools that are always allowed; used if the skills are unknown.
    pub fn closed() -> Self {
        Self::Only(BTreeSet::new())
    }

    /// Reports whether a tool may be called.
    pub fn allows(&self, tool: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Only(allowed) => ALWAYS.contains(&tool) || allowed.contains(tool),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::MountedSkill;
    use crate::sandbox::virtual_paths::RelativePath;
    use crate::skills::Category;
    use crate::skills::frontmatter::Frontmatter;

    fn skill(tools: Option<&[&str]>) -> Skill {
        let allowed_tools =
            tools.map(|tools| tools.iter().map(|tool| (*tool).to_owned()).collect());
        let folder = MountedSkill {
            path: RelativePath::parse("public/x").unwrap(),
            host: "/x".into(),
        };
        Skill {
            head: Frontmatter {
                allowed_tools,
                ..Frontmatter::default()
            },
            category: Category::Public,
            enabled: true,
            folder,
        }
    }

    #[test]
    fn policy_allows_named_and_always_allowed_tools() {
        let (bash, silent, none) = (skill(Some(&["bash"])), skill(None), skill(Some(&[])));
        let allows = |skills: &[Option<&Skill>]| {
            let policy = ToolPolicy::of(skills.iter().copied());
            ["bash", "write_file", "read_file"].map(|tool| policy.allows(tool))
        };
        assert_eq!(allows(&[]), [true, true, true]);
        assert_eq!(allows(&[Some(&silent)]), [true, true, true]);
        assert_eq!(allows(&[Some(&bash)]), [true, false, true]);
        assert_eq!(allows(&[Some(&silent), Some(&bash)]), [true, false, true]);
        assert_eq!(allows(&[Some(&none)]), [false, false, true]);
        assert_eq!(allows(&[Some(&bash), None]), [true, false, true]);
        assert_eq!(allows(&[Some(&silent), None]), [false, false, true]);
        assert!(!ToolPolicy::closed().allows("bash") && ToolPolicy::closed().allows("tool_search"));
    }
}
