//! Finds the user's message that a turn answers, and how far the answer has come.

use crate::messages::{Message, kwargs, marks};

/// What the scripted model acts on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Cue {
    /// The user's own words.
    pub(super) text: String,
    /// Assistant turns since then.
    pub(super) turns_since: usize,
}

/// The newest genuine human message. Reminders that the framework slips in as human messages (hidden ones, and those that
/// are nothing but `<tag>..</tag>` blocks) are passed over, unless there is nothing else.
pub(super) fn cue(messages: &[Message]) -> Cue {
    let genuine = messages
        .iter()
        .rposition(|message| is_genuine(message) && !own_words(message).is_empty());
    let Some(at) = genuine.or_else(|| messages.iter().rposition(Message::is_human)) else {
        return Cue::default();
    };
    let turns_since = messages[at + 1..]
        .iter()
        .filter(|message| message.is_ai())
        .count();
    Cue {
        text: own_words(&messages[at]),
        turns_since,
    }
}

fn is_genuine(message: &Message) -> bool {
    let answers_agent = message
        .additional_kwargs
        .contains_key(kwargs::HUMAN_INPUT_RESPONSE);
    message.is_human() && (answers_agent || !message.flag(kwargs::HIDE_FROM_UI))
}

/// The text before the framework rewrote it, without the blocks put in front of it.
fn own_words(message: &Message) -> String {
    let original = message
        .additional_kwargs
        .get(kwargs::ORIGINAL_USER_CONTENT)
        .and_then(|value| value.as_str());
    let text = original.map_or_else(|| message.content.text(), str::to_owned);
    unframed(without_leading_blocks(&text)).to_owned()
}

/// The text without the marks that the framework puts around a person's words.
fn unframed(text: &str) -> &str {
    let inside = text
        .strip_prefix(marks::BEGIN_USER_INPUT)
        .and_then(|text| text.strip_suffix(marks::END_USER_INPUT));
    inside.map_or(text, str::trim)
}

fn without_leading_blocks(text: &str) -> &str {
    let mut rest = text.trim();
    while let Some(behind) = behind_block(rest) {
        rest = behind.trim_start();
    }
    rest
}

/// What follows the `<tag ..>..</tag>` block that `text` opens with.
fn behind_block(text: &str) -> Option<&str> {
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
    fn reminders_do_not_hide_what_the_user_said() {
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
            cue(&messages),
            Cue {
                text: "new <b>words</b>".to_owned(),
                turns_since: 2
            }
        );
    }

    #[test]
    fn a_hidden_answer_to_the_agent_counts_and_the_original_text_wins() {
        let answer = hidden("framed").with(|body| {
            body.additional_kwargs
                .insert(kwargs::HUMAN_INPUT_RESPONSE.to_owned(), json!({}));
            body.additional_kwargs
                .insert(kwargs::ORIGINAL_USER_CONTENT.to_owned(), json!("blue"));
        });
        assert_eq!(
            cue(&[Message::human("q"), Message::ai("which?"), answer]).text,
            "blue"
        );
    }

    #[test]
    fn a_conversation_without_a_user_gives_an_empty_cue() {
        assert_eq!(cue(&[Message::system("s")]), Cue::default());
        assert_eq!(cue(&[hidden("only this")]).text, "only this");
        for odd in ["<", "<a", "<a>", "<>x</>", "< b>c</b>"] {
            assert_eq!(cue(&[Message::human(odd)]).text, odd);
        }
    }
}
