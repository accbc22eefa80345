//! `/name …` at the beginning of a message: the user selects a skill for the task. Pure.

use super::skill_name::is_skill_name;

/// Slash commands of clients, which are not skill names.
const RESERVED: [&str; 7] = [
    "bootstrap",
    "goal",
    "help",
    "memory",
    "models",
    "new",
    "status",
];

/// A skill requested by a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Activation<'a> {
    /// Name of the skill.
    pub name: &'a str,
    /// Task for the skill.
    pub task: &'a str,
}

impl<'a> Activation<'a> {
    /// Parses a user's message; `None` if it requests no skill.
    pub fn read(text: &'a str) -> Option<Self> {
        let after = text.strip_prefix('/')?;
        let (name, task) = match after.find(char::is_whitespace) {
            Some(at) => after.split_at(at),
            None => (after, ""),
        };
        (is_skill_name(name) && !RESERVED.contains(&name)).then(|| Self {
            name,
            task: task.trim(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slash_and_name_at_start_activate_a_skill() {
        let read = |text| Activation::read(text).map(|found| (found.name, found.task));
        assert_eq!(
            read("/deep-research the moon"),
            Some(("deep-research", "the moon"))
        );
        assert_eq!(
            read("/data2\nsales.csv\nnow"),
            Some(("data2", "sales.csv\nnow"))
        );
        assert_eq!(read("/x"), Some(("x", "")));
        for other in [
            "",
            "/",
            " /x",
            "x /y",
            "/Deep x",
            "/a--b",
            "/a_b x",
            "/-a",
            "/mnt/skills",
            "//x",
            "/help me",
            "/new",
            "/bootstrap",
        ] {
            assert_eq!(read(other), None, "{other:?}");
        }
    }
}
