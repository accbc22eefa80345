//! Fields of a message, which are built when they are read if they would repeat a large text.

use std::sync::OnceLock;

use super::message_body::MessageBody;
use super::{Content, Message};

/// Creates the content of a message's form that models receive; `None` if the message has no other
/// form.
pub type Frame = fn(&Message) -> Option<Content>;

/// Fields of a message.
#[derive(Debug)]
pub(super) enum Fields {
    /// Fields of the message itself.
    Own(MessageBody),
    /// Fields of a form of another message.
    Late(Box<LateForm>),
}

/// Form of a message with a large text.
#[derive(Debug)]
pub(super) struct LateForm {
    base: Message,
    frame: Frame,
    built: OnceLock<Message>,
}

impl Fields {
    /// Returns the fields of a form of `base`.
    pub(super) fn late(base: Message, frame: Frame) -> Self {
        Self::Late(Box::new(LateForm {
            base,
            frame,
            built: OnceLock::new(),
        }))
    }

    /// Returns the fields. The first call builds and retains those of a form.
    pub(super) fn get(&self) -> &MessageBody {
        match self {
            Self::Own(body) => body,
            Self::Late(form) => form.built.get_or_init(|| form.build()),
        }
    }

    /// Reports whether the fields are in memory.
    #[cfg(test)]
    pub(super) fn is_built(&self) -> bool {
        match self {
            Self::Own(_) => true,
            Self::Late(form) => form.built.get().is_some(),
        }
    }
}

impl LateForm {
    /// Returns the message whose form it is.
    pub(super) fn base(&self) -> &Message {
        &self.base
    }

    /// Returns the form. Does not retain it, unless its fields were read before.
    pub(super) fn message(&self) -> Message {
        self.built.get().cloned().unwrap_or_else(|| self.build())
    }

    fn build(&self) -> Message {
        match (self.frame)(&self.base) {
            Some(content) => self.base.with_content(content),
            None => self.base.clone(),
        }
    }
}
