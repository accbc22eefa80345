//! Commands in messages.

use crate::platform::CommandHelp;

/// Commands that platforms may list.
pub(crate) const COMMANDS: &[CommandHelp] = &[
    command("new", "start a new conversation"),
    command("status", "show the conversation and what is in progress"),
    command("models", "list the models, or select one"),
    command("memory", "show what is remembered about you"),
    command("goal", "show, set or clear the goal of this conversation"),
    command("bootstrap", "set up an agent"),
    command("stop", "stop the answer in progress"),
    command("connect", "connect your account with a code"),
    command("help", "list the commands"),
];

const fn command(name: &'static str, description: &'static str) -> CommandHelp {
    CommandHelp { name, description }
}

/// Parsed command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Command {
    /// Starts a new thread.
    New,
    /// Shows the thread and the active run.
    Status,
    /// Lists the models, or selects the named one.
    Models(Option<String>),
    /// Shows the user's memory.
    Memory,
    /// Shows, sets or clears (`clear`) the goal.
    Goal(Option<String>),
    /// Runs the agent in bootstrap mode.
    Bootstrap(Option<String>),
    /// Lists the commands.
    Help,
    /// Cancels the active run.
    Stop,
    /// Connects the person with a code.
    Connect(String),
    /// Greets, or connects the person with a code.
    Start(Option<String>),
    /// A skill, or an unknown command.
    Other(String),
}

/// Parses a text that begins with a slash. A path such as `/mnt/x` is no command.
pub(crate) fn parse(text: &str) -> Option<Command> {
    let rest = text.strip_prefix('/')?;
    let (name, argument) = match rest.split_once(char::is_whitespace) {
        Some((name, argument)) => (name, argument.trim()),
        None => (rest.trim_end(), ""),
    };
    let is_name = !name.is_empty()
        && name
            .chars()
            .all(|character| character.is_alphanumeric() || matches!(character, '-' | '_'));
    if !is_name {
        return None;
    }
    let name = name.to_lowercase();
    let argument = (!argument.is_empty()).then(|| argument.to_owned());
    Some(match (name.as_str(), argument) {
        ("new", _) => Command::New,
        ("status", _) => Command::Status,
        ("models", argument) => Command::Models(argument),
        ("memory", _) => Command::Memory,
        ("goal", argument) => Command::Goal(argument),
        ("bootstrap", argument) => Command::Bootstrap(argument),
        ("help", _) => Command::Help,
        ("stop", _) => Command::Stop,
        ("connect", Some(code)) => Command::Connect(code),
        ("connect", None) => Command::Help,
        ("start", code) => Command::Start(code),
        _ => Command::Other(name),
    })
}

/// Reports whether a command must not wait for the active run of its conversation.
pub(crate) fn is_immediate(text: &str) -> bool {
    matches!(parse(text), Some(Command::Stop))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_parsed_case_insensitively() {
        assert_eq!(parse("/new"), Some(Command::New));
        assert_eq!(parse("/NEW  "), Some(Command::New));
        assert_eq!(
            parse("/connect  abc-_1 "),
            Some(Command::Connect("abc-_1".to_owned()))
        );
        assert_eq!(
            parse("/goal write a\npoem"),
            Some(Command::Goal(Some("write a\npoem".to_owned())))
        );
        assert_eq!(
            parse("/deep-research x"),
            Some(Command::Other("deep-research".to_owned()))
        );
    }

    #[test]
    fn other_texts_are_no_commands() {
        for text in [
            "new",
            " /new",
            "/",
            "/ new",
            "/mnt/user-data/x",
            "//",
            "/a.b",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
