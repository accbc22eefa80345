//! Having a turn answered again, as it was or with another question: which turn is meant, and what its replay is given. Pure.

use harness::messages::{Content, Message, kwargs};
use serde_json::{Value, json};

/// The last turn of a conversation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Turn<'a> {
    /// The question.
    pub question: &'a Message,
    /// The last answer.
    pub answer: &'a Message,
    /// All of it, from the question on.
    pub messages: &'a [Message],
}

/// Why a turn cannot be replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotReplayable {
    /// The message is not among those of the newest state.
    #[error("the message is unknown")]
    Unknown,
    /// It is not the last answer.
    #[error("Only the latest assistant message can be regenerated")]
    NotLatestAnswer,
    /// It is not the last question.
    #[error("Only the latest user message can be edited")]
    NotLatestQuestion,
    /// Nobody asked, or the question was compacted away.
    #[error("The user message of this answer is no longer available")]
    NoQuestion,
    /// Nothing was answered yet.
    #[error("This message has no answer yet")]
    NoAnswer,
}

/// The turn that ends with the answer `id`.
pub fn turn_of_answer<'a>(messages: &'a [Message], id: &str) -> Result<Turn<'a>, NotReplayable> {
    let last = messages
        .iter()
        .rposition(is_answer)
        .filter(|last| messages[*last].id.as_deref() == Some(id));
    let last = last.ok_or_else(|| unless_known(messages, id, NotReplayable::NotLatestAnswer))?;
    let first = messages[..last]
        .iter()
        .rposition(is_question)
        .ok_or(NotReplayable::NoQuestion)?;
    Ok(Turn {
        question: &messages[first],
        answer: &messages[last],
        messages: &messages[first..],
    })
}

/// The turn that begins with the question `id`.
pub fn turn_of_question<'a>(messages: &'a [Message], id: &str) -> Result<Turn<'a>, NotReplayable> {
    let first = messages
        .iter()
        .rposition(is_question)
        .filter(|first| messages[*first].id.as_deref() == Some(id));
    let first =
        first.ok_or_else(|| unless_known(messages, id, NotReplayable::NotLatestQuestion))?;
    let messages = &messages[first..];
    let answer = messages
        .iter()
        .rfind(|message| is_answer(message))
        .ok_or(NotReplayable::NoAnswer)?;
    Ok(Turn {
        question: &messages[0],
        answer,
        messages,
    })
}

fn unless_known(messages: &[Message], id: &str, known: NotReplayable) -> NotReplayable {
    if messages
        .iter()
        .any(|message| message.id.as_deref() == Some(id))
    {
        known
    } else {
        NotReplayable::Unknown
    }
}

/// What a person said: not what the framework put into the conversation in a person's name.
fn is_question(message: &Message) -> bool {
    let hidden = message.flag(kwargs::HIDE_FROM_UI)
        && !message
            .additional_kwargs
            .contains_key(kwargs::HUMAN_INPUT_RESPONSE);
    message.is_human() && !hidden && message.name.as_deref() != Some("summary")
}

fn is_answer(message: &Message) -> bool {
    message.is_ai() && !message.flag(kwargs::HIDE_FROM_UI)
}

impl Turn<'_> {
    /// The question as it was asked, for the input of the replay.
    pub fn question_again(&self) -> Value {
        let mut extra = self.question.additional_kwargs.clone();
        extra.shift_remove(kwargs::ORIGINAL_USER_CONTENT);
        json!({
            "type": "human",
            "content": asked(self.question),
            "additional_kwargs": extra,
            "id": self.question.id,
            "name": self.question.name,
        })
    }

    /// Another question in its place, with what was attached to the old one.
    pub fn question_edited(&self, id: &str, text: &str) -> Value {
        let mut content = vec![json!({ "type": "text", "text": text })];
        if let Content::Blocks(blocks) = &self.question.content {
            content.extend(blocks.iter().filter(|block| !is_text(block)).cloned());
        }
        let mut extra = self.question.additional_kwargs.clone();
        extra.retain(|key, _| key == kwargs::FILES);
        json!({ "type": "human", "id": id, "content": content, "additional_kwargs": extra, "name": self.question.name })
    }

    /// The ids of what a reader sees of the turn.
    pub fn visible_ids(&self) -> Vec<&str> {
        let visible = self.messages.iter().filter(|message| {
            !message.flag(kwargs::HIDE_FROM_UI) && message.type_name() != "system"
        });
        visible
            .filter_map(|message| message.id.as_deref())
            .collect()
    }
}

/// The content without what middlewares added for the model.
fn asked(question: &Message) -> Content {
    let original = question
        .additional_kwargs
        .get(kwargs::ORIGINAL_USER_CONTENT)
        .and_then(Value::as_str);
    match (original, &question.content) {
        (None, content) => content.clone(),
        (Some(text), Content::Text(_)) => text.into(),
        (Some(text), Content::Blocks(blocks)) => {
            let others = blocks.iter().filter(|block| !is_text(block)).cloned();
            Content::Blocks(
                std::iter::once(json!({ "type": "text", "text": text }))
                    .chain(others)
                    .collect(),
            )
        }
    }
}

fn is_text(block: &Value) -> bool {
    block.is_string() || block.get("type").is_none_or(|kind| kind == "text")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn human(id: &str, extra: Value) -> Message {
        Message::human(id).with(|body| {
            body.id = Some(id.to_owned());
            body.additional_kwargs = extra.as_object().cloned().unwrap_or_default();
        })
    }

    fn ai(id: &str) -> Message {
        Message::ai(id).with(|body| body.id = Some(id.to_owned()))
    }

    fn ids(turn: Turn<'_>) -> (&str, &str) {
        (
            turn.question.id.as_deref().unwrap_or_default(),
            turn.answer.id.as_deref().unwrap_or_default(),
        )
    }

    #[test]
    fn only_the_last_turn_is_replayed() {
        let hidden = human("hint", json!({ "hide_from_ui": true }));
        let reply = human(
            "reply",
            json!({ "hide_from_ui": true, "human_input_response": {} }),
        );
        let summary = human("sum", json!({})).with(|body| body.name = Some("summary".to_owned()));
        let talk = [
            human("q1", json!({})),
            ai("a1"),
            human("q2", json!({})),
            hidden.clone(),
            ai("a2"),
            ai("a3"),
        ];
        use NotReplayable as No;
        for (messages, id, expected) in [
            (&talk[..], "a3", Ok(("q2", "a3"))),
            (&talk[..], "a2", Err(No::NotLatestAnswer)),
            (&talk[..], "a1", Err(No::NotLatestAnswer)),
            (&talk[..], "q2", Err(No::NotLatestAnswer)),
            (&talk[..], "zz", Err(No::Unknown)),
            (&[ai("a")], "a", Err(No::NoQuestion)),
            (
                &[summary.clone(), hidden.clone(), ai("a")],
                "a",
                Err(No::NoQuestion),
            ),
            (
                &[human("q", json!({})), ai("a"), reply.clone(), ai("b")],
                "b",
                Ok(("reply", "b")),
            ),
            (&[], "a", Err(No::Unknown)),
        ] {
            assert_eq!(turn_of_answer(messages, id).map(ids), expected, "{id}");
        }
        for (messages, id, expected) in [
            (&talk[..], "q2", Ok(("q2", "a3"))),
            (&talk[..], "q1", Err(No::NotLatestQuestion)),
            (&talk[..], "a3", Err(No::NotLatestQuestion)),
            (&talk[..], "zz", Err(No::Unknown)),
            (&[ai("a"), human("q", json!({}))], "q", Err(No::NoAnswer)),
        ] {
            assert_eq!(turn_of_question(messages, id).map(ids), expected, "{id}");
        }
        assert_eq!(
            turn_of_answer(&talk, "a3").map(|turn| turn.visible_ids().join(" ")),
            Ok("q2 a2 a3".to_owned())
        );
    }

    #[test]
    fn a_question_is_asked_again_without_what_middlewares_added() {
        let image = json!({ "type": "image_url", "image_url": { "url": "u" } });
        let extra = json!({ "original_user_content": "mine", "files": [1], "run_id": "r" });
        let question = human("q", extra).with(|body| {
            body.content = Content::Blocks(vec![
                json!({ "type": "text", "text": "<uploads>" }),
                json!("mine"),
                image.clone(),
            ]);
            body.name = Some("user-input".to_owned());
        });
        let messages = [question, ai("a")];
        let turn = turn_of_answer(&messages, "a").expect("a turn");
        let mine = json!({ "type": "text", "text": "mine" });
        let again = json!({
            "type": "human", "content": [mine, image], "additional_kwargs": { "files": [1], "run_id": "r" }, "id": "q", "name": "user-input",
        });
        assert_eq!(turn.question_again(), again);
        let other = json!({ "type": "text", "text": "other" });
        let edited = json!({
            "type": "human", "id": "n", "content": [other, image], "additional_kwargs": { "files": [1] }, "name": "user-input",
        });
        assert_eq!(turn.question_edited("n", "other"), edited);
    }
}
