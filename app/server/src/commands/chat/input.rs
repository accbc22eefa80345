//! Parses what the user enters at the prompt.

/// Help text for the prompt.
pub(super) const HELP: &str = "\
/new            start a new conversation
/resume THREAD  continue a conversation
/model NAME     use this model from now on; without a name the configured one
/plan           toggle plan mode
/help           show this help
/quit           quit, like Ctrl-D";

/// Parsed line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Input<'a> {
    /// Empty line.
    Empty,
    /// Message for the agent.
    Message(&'a str),
    /// Commands of [`HELP`].
    New,
    Resume(&'a str),
    Model(&'a str),
    Plan,
    Help,
    Quit,
}

impl<'a> Input<'a> {
    /// Parses a line. Unknown commands are messages for the agent, because paths and skills also
    /// begin with a slash.
    pub(super) fn read(line: &'a str) -> Self {
        let line = line.trim();
        let Some(rest) = line.strip_prefix('/') else {
            return if line.is_empty() {
                Self::Empty
            } else {
                Self::Message(line)
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
            _ => Self::Message(line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slash_commands_are_distinguished_from_messages() {
        let cases = [
            ("", Input::Empty),
            ("  hello there ", Input::Message("hello there")),
            ("/new", Input::New),
            ("/resume  abc ", Input::Resume("abc")),
            ("/model", Input::Model("")),
            ("/exit", Input::Quit),
            ("/bootstrap", Input::Message("/bootstrap")),
            (
                "/new plans for the house",
                Input::Message("/new plans for the house"),
            ),
            (
                "/deep-research wolves",
                Input::Message("/deep-research wolves"),
            ),
            (
                "/mnt/user-data/x.txt is what?",
                Input::Message("/mnt/user-data/x.txt is what?"),
            ),
        ];
        for (line, expected) in cases {
            assert_eq!(Input::read(line), expected, "{line:?}");
        }
    }
}
