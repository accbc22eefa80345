//! Texts of people: commands, mentions of the bot, and the length limit.

use crate::platform::cut_text;

/// Text of a person after normalization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Words {
    /// Text without the bot's name at its start and in its command.
    pub(super) text: String,
    /// `true` if the text names the bot or is a command.
    pub(super) names_bot: bool,
    /// `true` if the text was cut.
    pub(super) cut: bool,
}

/// Normalizes a text. Returns `None` for a command of another bot.
pub(super) fn normalize(text: &str, username: &str) -> Option<Words> {
    let mut names_bot = mentions(text, username);
    let stripped = strip_mention(text, username);
    let (text, is_command) = match command(stripped) {
        Some((name, Some(bot), rest)) => {
            if !bot.eq_ignore_ascii_case(username) {
                return None;
            }
            (format!("/{name}{rest}"), true)
        }
        Some((_, None, _)) => (stripped.to_owned(), true),
        None => (stripped.to_owned(), false),
    };
    names_bot |= is_command;
    let (text, cut) = cut_text(text);
    Some(Words {
        text,
        names_bot,
        cut,
    })
}

/// Splits a command into its name, the bot that it names, and the rest.
fn command(text: &str) -> Option<(&str, Option<&str>, &str)> {
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (first, rest) = text.split_at(end);
    let first = first.strip_prefix('/')?;
    let is_name = |name: &str| !name.is_empty() && name.chars().all(is_name_character);
    match first.split_once('@') {
        Some((name, bot)) if is_name(bot) => Some((name, Some(bot), rest)),
        // File paths and the like are texts, not commands.
        _ => first
            .chars()
            .all(|character| is_name_character(character) || character == '-')
            .then_some((first, None, rest))
            .filter(|_| !first.is_empty()),
    }
}

/// Returns the text after a leading mention of the bot.
fn strip_mention<'a>(text: &'a str, username: &str) -> &'a str {
    let start = text.trim_start();
    match after_mention(start, username) {
        Some(rest) => rest.trim_start_matches([',', ':']).trim_start(),
        None => text,
    }
}

/// Returns the rest of a text that begins with a mention of the bot.
fn after_mention<'a>(text: &'a str, username: &str) -> Option<&'a str> {
    let name = text.strip_prefix('@')?;
    let (name, rest) = name.split_at_checked(username.len())?;
    let is_bot = !username.is_empty()
        && name.eq_ignore_ascii_case(username)
        && !rest.starts_with(is_name_character);
    is_bot.then_some(rest)
}

/// `true` if the text mentions the bot anywhere.
fn mentions(text: &str, username: &str) -> bool {
    text.match_indices('@').any(|(at, _)| {
        !text[..at].ends_with(is_name_character) && after_mention(&text[at..], username).is_some()
    })
}

fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::MAX_TEXT_BYTES;

    #[test]
    fn mentions_and_commands_are_normalized() {
        for (text, expected, names_bot) in [
            ("hello", Some("hello"), false),
            ("@deer_bot hello", Some("hello"), true),
            ("  @Deer_Bot, hello", Some("hello"), true),
            ("@deer_bot", Some(""), true),
            ("@deer_bots hello", Some("@deer_bots hello"), false),
            ("ask @deer_bot now", Some("ask @deer_bot now"), true),
            ("mail a@deer_bot", Some("mail a@deer_bot"), false),
            ("/new", Some("/new"), true),
            ("/new@deer_bot", Some("/new"), true),
            ("/goal@DEER_BOT ship it", Some("/goal ship it"), true),
            ("@deer_bot /new", Some("/new"), true),
            ("@deer_bot\n/new@deer_bot x", Some("/new x"), true),
            ("/new@other_bot", None, false),
            ("/usr/bin is a path", Some("/usr/bin is a path"), false),
            ("/skill-name do", Some("/skill-name do"), true),
            ("/start code_1-2", Some("/start code_1-2"), true),
            (" /new", Some(" /new"), false),
            ("/", Some("/"), false),
            ("@é", Some("@é"), false),
        ] {
            let words = normalize(text, "deer_bot");
            assert_eq!(
                words.as_ref().map(|words| words.text.as_str()),
                expected,
                "{text}"
            );
            assert_eq!(
                words.is_some_and(|words| words.names_bot),
                names_bot,
                "{text}"
            );
        }
    }

    #[test]
    fn long_text_is_cut_at_a_character() {
        let words = normalize(&"é".repeat(MAX_TEXT_BYTES), "deer_bot").unwrap();
        assert!(words.cut);
        assert_eq!(words.text.len(), MAX_TEXT_BYTES);
        let odd = normalize(&format!("a{}", "é".repeat(MAX_TEXT_BYTES)), "deer_bot").unwrap();
        assert_eq!(odd.text.len(), MAX_TEXT_BYTES - 1);
    }

    #[test]
    fn bot_without_a_name_is_never_mentioned() {
        let words = normalize("@ hello", "").unwrap();
        assert_eq!(words.text, "@ hello");
        assert!(!words.names_bot);
    }
}
