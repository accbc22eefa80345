//! Regeneration of the last turn, with the same or an edited question: finds the turn and builds
//! the input. Pure.

use harness::messages::{Content, Message, kwargs};
use serde_json::{Value, json};

/// The last turn of a conversation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Turn<'a> {
    /// The user's message.
    pub question: &'a Message,
    /// The last answer.
    pub answer: &'a Message,
    /// All messages of the turn, from the question on.
    pub messages: &'a [Message],
}

/// Reasons why a turn cannot be regenerated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotReplayable {
    /// The newest state does not contain the message.
    #[error("the message is unknown")]
    Unknown,
    /// The message is not the last answer.
    #[error("Only the latest assistant message can be regenerated")]
    NotLatestAnswer,
    /// The message is not the last question.
    #[error("Only the latest user message can be edited")]
    NotLatestQuestion,
    /// The turn has no question, or compaction removed it.
    #[error("The user message of this answer is no longer available")]
    NoQuestion,
    /// The question has no answer yet.
    #[error("This message has no answer yet")]
    NoAnswer,
}

/// Returns the turn that ends with the answer `id`.
pub fn turn_of_answer<'a>(messages: &'a [Message], id: &str) -> Result<Turn<'a>, NotReplayable> {
    let last = messages
        .iter()
        .rposition(is_answer)
        .filter(|last| messages[*last].id.as_deref() == Some(id));
    let last = last.ok_or_else(|| unless_unknown(messages, id, NotReplayable::NotLatestAnswer))?;
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

/// Returns the turn that begins with the question `id`.
pub fn turn_of_question<'a>(messages: &'a [Message], id: &str) -> Result<Turn<'a>, NotReplayable> {
    let first = messages
        .iter()
        .rposition(is_question)
        .filter(|first| messages[*first].id.as_deref() == Some(id));
    let first =
        first.ok_or_else(|| unless_unknown(messages, id, NotReplayable::NotLatestQuestion))?;
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

fn unless_unknown(messages: &[Message], id: &str, known: NotReplayable) -> NotReplayable {
    if messages
        .iter()
        .any(|message| message.id.as_deref() == Some(id))
    {
        known
    } else {
        NotReplayable::Unknown
    }
}

/// `true` for a message of the user, not one that the framework added in the user's name.
pub(super) fn is_question(message: &Message) -> bool {
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
    /// Returns the original question as input of the new run.
    pub fn original_question(&self) -> Value {
        let mut extra = self.question.additional_kwargs.clone();
        extra.shift_remove(kwargs::ORIGINAL_USER_CONTENT);
        json!({
            "type": "human",
            "content": question_content(self.question),
            "additional_kwargs": extra,
            "id": self.question.id,
            "name": self.question.name,
        })
    }

    /// Returns the edited question, with the attachments of the original.
    pub fn edited_question(&self, id: &str, text: &str) -> Value {
        let mut content = vec![json!({ "type": "text", "text": text })];
        if let Content::Blocks(blocks) = &self.question.content {
            content.extend(blocks.iter().filter(|block| !is_text(block)).cloned());
        }
        let mut extra = self.question.additional_kwargs.clone();
        extra.retain(|key, _| key == kwargs::FILES);
        json!({ "type": "human", "id": id, "content": content, "additional_kwargs": extra, "name": self.question.name })
    }

    /// Returns the ids of the turn's visible messages.
    pub fn visible_ids(&self) -> Vec<&str> {
        let visible = self.messages.iter().filter(|message| {
            !message.flag(kwargs::HIDE_FROM_UI) && message.type_name() != "system"
        });
        visible
            .filter_map(|message| message.id.as_deref())
            .collect()
    }
}

/// Returns the content without what middlewares added for the model.
fn question_content(question: &Message) -> Content {
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
#[path = "regenerate_tests.rs"]
mod tests;
