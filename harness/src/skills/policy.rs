//! Which tools an agent may call while it works by skills. Pure.

use std::collections::BTreeSet;

use super::skill::Skill;

/// What is always allowed: without it no skill could be read.
const ALWAYS: [&str; 4] = [
    "describe_skill",
    "read_file",
    "review_skill_package",
    "tool_search",
];

/// The tools that the skills at work leave.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ToolPolicy {
    /// No skill says anything.
    #[default]
    Any,
    /// Those that skills name, and those that are always allowed.
    Only(BTreeSet<String>),
}

impl ToolPolicy {
    /// By the skills that an agent works by. One that nobody can find any more (`None`) allows nothing; skills that say nothing of
    /// tools take nothing away, and give nothing to others.
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

    /// Nothing but what is always allowed: where it is not known what skills say.
    pub fn closed() -> Self {
        Self::Only(BTreeSet::new())
    }

    /// Whether a tool may be called.
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
    use crate::sandbox::ShelvedFolder;
    use crate::sandbox::virtual_paths::RelativePath;
    use crate::skills::Category;
    use crate::skills::frontmatter::Frontmatter;

    fn skill(tools: Option<&[&str]>) -> Skill {
        let allowed_tools =
            tools.map(|tools| tools.iter().map(|tool| (*tool).to_owned()).collect());
        let folder = ShelvedFolder {
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
    fn skills_that_name_tools_leave_those_and_the_ones_that_read() {
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
