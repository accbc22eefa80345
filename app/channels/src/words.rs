//! Texts that bots send to people.

use crate::commands::COMMANDS;

/// Reply to a message that waits behind an active run.
pub(crate) const QUEUED: &str = "I am still working on an earlier message. Yours is next.";
/// Reply to a message that is refused because of an active run.
pub(crate) const BUSY: &str =
    "I am still working on an earlier message. Please send this one again when I am done.";
/// Reply if a run ended without a text.
pub(crate) const NO_ANSWER: &str = "I have no answer to this. Please ask again in other words.";
/// Reply if a run failed without a text.
pub(crate) const FAILED: &str = "Something went wrong while I was working. Please try again.";
/// Reply to a message that could not be handled repeatedly.
pub(crate) const SET_ASIDE: &str =
    "I could not process this message. It is set aside; please send it again later.";
/// Note below the text of a cancelled answer.
pub(crate) const STOPPED: &str = "Stopped.";
/// Reply to `/stop` without an active run.
pub(crate) const NOTHING_TO_STOP: &str = "There is nothing to stop.";
/// Reply to a press that no longer applies.
pub(crate) const EXPIRED: &str = "This button is no longer valid.";
/// Reply to a press of another person.
pub(crate) const NOT_YOURS: &str = "Only the person who was asked can answer.";
/// Reply to an invalid code.
pub(crate) const INVALID_CODE: &str =
    "This connection code is invalid or has expired. Create a new one in DeerFlow's settings.";
/// Reply to a code if people cannot connect accounts.
pub(crate) const CONNECTIONS_OFF: &str = "Connecting accounts is not enabled for this bot.";
/// Reply to a valid code.
pub(crate) const CONNECTED: &str = "Connected. You can talk to the agent here.";
/// Reply to a person who has to connect first.
pub(crate) const MUST_CONNECT: &str = "Please connect your account first: open the channels in DeerFlow's settings and send the shown code here with /connect CODE.";
/// Reply to too many messages.
pub(crate) const TOO_FAST: &str =
    "There were too many messages in a short time. Please wait a minute and try again.";
/// Reply to a message that exceeds the waiting messages of a conversation.
pub(crate) const TOO_MANY_WAITING: &str =
    "Too many of your messages are waiting. Please wait until they are answered.";
/// Reply to `/new`.
pub(crate) const NEW_CONVERSATION: &str = "This is a new conversation.";
/// Greeting for `/start`.
pub(crate) const GREETING: &str = "Hello. Send me a message, or /help for the commands.";
/// Reply if the installation cannot answer a command.
pub(crate) const UNAVAILABLE: &str = "I cannot answer this right now. Please try again later.";
/// Label of the button that stops an answer.
pub(crate) const STOP_LABEL: &str = "Stop";
/// Message that initializes an agent, if `/bootstrap` has no text.
pub(crate) const BOOTSTRAP: &str = "Let us set up this agent together.";
/// Note in a text that was cut at the maximum length.
pub(crate) const CUT: &str = "[The rest of this message was too long and is missing.]";
/// Name of the file that holds a very long answer.
pub(crate) const ANSWER_FILE: &str = "answer.md";
/// Text that announces that file.
pub(crate) const ANSWER_AS_FILE: &str = "The answer is long. It is in the attached file.";
/// Message to the agent if only files were sent.
pub(crate) const FILES_ONLY: &str = "See the attached files.";

/// Returns the list of commands.
pub(crate) fn help() -> String {
    let mut text = "Commands:".to_owned();
    for command in COMMANDS {
        text.push_str(&format!("\n- `/{}`: {}", command.name, command.description));
    }
    text.push_str("\n- `/SKILL task`: use a skill for a task");
    text
}

/// Returns the reply to an unknown command.
pub(crate) fn unknown_command(name: &str) -> String {
    format!("There is no command or skill `/{name}`.\n\n{}", help())
}

/// Returns the line that lists presented files which were not sent.
pub(crate) fn unsent_file(name: &str, reason: &str) -> String {
    format!("The file {name} could not be sent: {reason}.")
}

/// Returns the line about a received file that was not stored.
pub(crate) fn unreceived_file(name: &str, reason: &str) -> String {
    format!("[The file {name} could not be received: {reason}]")
}
