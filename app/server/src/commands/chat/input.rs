//! What a person writes at the prompt.

/// What can be written.
pub(super) const HELP: &str = "\
/new            begin another conversation
/resume THREAD  go on with one
/model NAME     ask this model from now on; without a name the configured one
/plan           plan with a list of things to do, or no longer
/help           show this
/quit           end, as Ctrl-D does";

/// A line, understood.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said<'a> {
    /// Nothing.
    Nothing,
    /// Something for the agent.
    Words(&'a str),
    /// The commands of [`HELP`].
    New,
    Resume(&'a str),
    Model(&'a str),
    Plan,
    Help,
    Quit,
}

impl<'a> Said<'a> {
    /// Paths and skills begin with a slash, too: what is no command of ours is for the agent.
    pub(super) fn read(line: &'a str) -> Self {
        let line = line.trim();
        let Some(rest) = line.strip_prefix('/') else {
            return if line.is_empty() {
                Self::Nothing
            } else {
                Self::Words(line)
            };
        };
        let (command, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let argument = argument.trim();
        match (command, argument) {
            ("new", "") => Self::New,
            ("resume", thread) => Self::Resume(thread),
            ("model", name) => Self::Model(name),
            ("plan", "") => Self::Plan,
            ("help", "") => Self::Help,
            ("quit" | "exit", "") => Self::Quit,
            _ => Self::Words(line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_from_words() {
        let cases = [
            ("", Said::Nothing),
            ("  hello there ", Said::Words("hello there")),
            ("/new", Said::New),
            ("/resume  abc ", Said::Resume("abc")),
            ("/model", Said::Model("")),
            ("/exit", Said::Quit),
            ("/bootstrap", Said::Words("/bootstrap")),
            (
                "/new plans for the house",
                Said::Words("/new plans for the house"),
            ),
            (
                "/deep-research wolves",
                Said::Words("/deep-research wolves"),
            ),
            (
                "/mnt/user-data/x.txt is what?",
                Said::Words("/mnt/user-data/x.txt is what?"),
            ),
        ];
        for (line, said) in cases {
            assert_eq!(Said::read(line), said, "{line:?}");
        }
    }
}
