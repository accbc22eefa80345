//! Finds the user message that a turn answers, and the number of turns since then.

use deerflow_core::messages::{Message, kwargs, marks};

/// User prompt that the scripted model follows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct UserPrompt {
    /// Text that the user wrote.
    pub(super) text: String,
    /// Number of assistant turns since the message.
    pub(super) turns_since: usize,
}

/// Returns the newest message that the user wrote. Skips reminders that the framework inserts as
/// human messages (hidden ones, and those that consist only of `<tag>..</tag>` blocks), unless
/// there is no other.
pub(super) fn user_prompt(messages: &[Message]) -> UserPrompt {
    let genuine = messages
        .iter()
        .rposition(|message| is_genuine(message) && !user_text(message).is_empty());
    let Some(at) = genuine.or_else(|| messages.iter().rposition(Message::is_human)) else {
        return UserPrompt::default();
    };
    let turns_since = messages[at + 1..]
        .iter()
        .filter(|message| message.is_ai())
        .count();
    UserPrompt {
        text: user_text(&messages[at]),
        turns_since,
    }
}

fn is_genuine(message: &Message) -> bool {
    let answers_agent = message
        .additional_kwargs
        .contains_key(kwargs::HUMAN_INPUT_RESPONSE);
    message.is_human() && (answers_agent || !message.flag(kwargs::HIDE_FROM_UI))
}

/// Returns the text before the framework changed it, without the blocks inserted in front of it.
fn user_text(message: &Message) -> String {
    let original = message
        .additional_kwargs
        .get(kwargs::ORIGINAL_USER_CONTENT)
        .and_then(|value| value.as_str());
    let text = original.map_or_else(|| message.content.text(), str::to_owned);
    strip_marks(without_leading_blocks(&text)).to_owned()
}

/// Removes the marks that the framework puts around user text.
fn strip_marks(text: &str) -> &str {
    let inside = text
        .strip_prefix(marks::BEGIN_USER_INPUT)
        .and_then(|text| text.strip_suffix(marks::END_USER_INPUT));
    inside.map_or(text, str::trim)
}

fn without_leading_blocks(text: &str) -> &str {
    let mut rest = text.trim();
    while let Some(behind) = after_block(rest) {
        rest = behind.trim_start();
    }
    rest
}

/// Returns the text after the `<tag ..>..</tag>` block at the start of `text`.
fn after_block(text: &str) -> Option<&str> {
    let inside = text.strip_prefix('<')?;
    let name_end = inside.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'))?;
    let name = &inside[..name_end];
    let body = &inside[inside.find('>')? + 1..];
    let close = format!("</{name}>");
    (!name.is_empty()).then_some(())?;
    body.find(&close).map(|at| &body[at + close.len()..])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hidden(text: &str) -> Message {
        Message::human(text).with(|body| {
            body.additional_kwargs
                .insert(kwargs::HIDE_FROM_UI.to_owned(), json!(true));
        })
    }

    #[test]
    fn reminders_are_skipped() {
        let messages = [
            Message::human("old"),
            Message::ai("a"),
            Message::human("<uploads>\nx.pdf\n</uploads>\nnew <b>words</b>"),
            Message::ai("b"),
            hidden("your todo list is not done"),
            Message::human("<reminder a=\"1\">now</reminder>\n<note>..</note>"),
            Message::ai("c"),
        ];
        assert_eq!(
            user_prompt(&messages),
            UserPrompt {
                text: "new <b>words</b>".to_owned(),
                turns_since: 2
            }
        );
    }

    #[test]
    fn hidden_answer_counts_and_original_text_wins() {
        let answer = hidden("framed").with(|body| {
            body.additional_kwargs
                .insert(kwargs::HUMAN_INPUT_RESPONSE.to_owned(), json!({}));
            body.additional_kwargs
                .insert(kwargs::ORIGINAL_USER_CONTENT.to_owned(), json!("blue"));
        });
        assert_eq!(
            user_prompt(&[Message::human("q"), Message::ai("which?"), answer]).text,
            "blue"
        );
    }

    #[test]
    fn conversation_without_user_gives_empty_prompt() {
        assert_eq!(user_prompt(&[Message::system("s")]), UserPrompt::default());
        assert_eq!(user_prompt(&[hidden("only this")]).text, "only this");
        for malformed in ["<", "<a", "<a>", "<>x</>", "< b>c</b>"] {
            assert_eq!(user_prompt(&[Message::human(malformed)]).text, malformed);
        }
    }
}
