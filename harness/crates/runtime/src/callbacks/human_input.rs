//! Tracks the human message of a run until it is journaled.

use serde_json::Value;

use super::tokens::EXCERPT_CHARS;
use deerflow_core::messages::{Message, kwargs};
use deerflow_core::state::ThreadState;

/// Human message of a run. It is journaled when the first answer begins: middlewares may still
/// change it until then, and the journal and the state must contain the same message.
#[derive(Debug)]
pub(super) enum HumanInput {
    None,
    Pending(Message),
    /// Journaled, with this excerpt of its text.
    Written(String),
}

impl HumanInput {
    /// Copies the version of the message that `state` has.
    pub(super) fn update(&mut self, state: &ThreadState) {
        if let Self::Pending(pending) = self
            && let Some(now) = state
                .messages()
                .iter()
                .rfind(|message| message.id == pending.id)
        {
            *self = Self::Pending(now.clone());
        }
    }

    /// Marks a pending message as journaled.
    pub(super) fn set_written(&mut self) {
        if let Self::Pending(message) = self {
            *self = Self::Written(message.content.text_start(EXCERPT_CHARS));
        }
    }

    /// Marks a pending message as journaled, and returns it as the user wrote it.
    pub(super) fn take_pending(&mut self) -> Option<Message> {
        let Self::Pending(message) = self else {
            return None;
        };
        let original = message
            .additional_kwargs
            .get(kwargs::ORIGINAL_USER_CONTENT)
            .and_then(Value::as_str);
        let written = match original {
            Some(original) => message.with(|body| body.content = original.into()),
            None => message.clone(),
        };
        *self = Self::Written(written.content.text_start(EXCERPT_CHARS));
        Some(written)
    }

    /// Returns an excerpt of the message.
    pub(super) fn excerpt(&self) -> Option<String> {
        match self {
            Self::None => None,
            Self::Pending(message) => Some(message.content.text_start(EXCERPT_CHARS)),
            Self::Written(text) => Some(text.clone()),
        }
    }
}

/// Finds the last human message with one of the ids `input_ids` that belongs in a transcript: one
/// that is visible in the user interface, or that answers an interrupt.
pub(super) fn find<'a>(state: &'a ThreadState, input_ids: &[String]) -> Option<&'a Message> {
    let persistable = |message: &&Message| {
        message.is_human()
            && message.name.as_deref() != Some("summary")
            && (!message.flag(kwargs::HIDE_FROM_UI)
                || message
                    .additional_kwargs
                    .contains_key(kwargs::HUMAN_INPUT_RESPONSE))
            && message.id.as_ref().is_some_and(|id| input_ids.contains(id))
    };
    state.messages().iter().rfind(persistable)
}
