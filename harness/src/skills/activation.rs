//! `/name …` at the beginning of a message: the user says by which skill the work is to be done. Pure.

use super::skill::is_skill_name;

/// Words behind a slash that mean something else to clients.
const RESERVED: [&str; 7] = [
    "bootstrap",
    "goal",
    "help",
    "memory",
    "models",
    "new",
    "status",
];

/// A skill that a message calls for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Activation<'a> {
    /// Its name.
    pub name: &'a str,
    /// What is to be done by it.
    pub task: &'a str,
}

impl<'a> Activation<'a> {
    /// Reads a user's message; nothing when it calls for no skill.
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
    fn a_slash_and_a_name_at_the_beginning_call_for_a_skill() {
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
