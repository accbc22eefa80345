//! Fields of a message, which are built when they are read if they would repeat a large text.

use std::ops::Deref;
use std::sync::OnceLock;

use super::message_body::MessageBody;
use super::text_pieces::TextPieces;

/// Creates the text of a form of a message `M`; `None` if the message has no other form.
type FrameOf<M> = fn(&M) -> Option<TextPieces<'_>>;

/// Fields of a message `M`.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all messages own their fields, which are read often"
)]
pub(super) enum Fields<M> {
    /// Fields of the message itself.
    Own(MessageBody),
    /// Fields of a form of another message.
    Late(Box<LateForm<M>>),
}

/// Form of a message with a large text.
#[derive(Debug)]
pub(super) struct LateForm<M> {
    base: M,
    frame: FrameOf<M>,
    built: OnceLock<M>,
}

impl<M: Clone + Deref<Target = MessageBody> + From<MessageBody>> Fields<M> {
    /// Returns the fields of a form of `base`.
    pub(super) fn late(base: M, frame: FrameOf<M>) -> Self {
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

impl<M: Clone + Deref<Target = MessageBody> + From<MessageBody>> LateForm<M> {
    /// Returns the message whose form it is.
    pub(super) fn base(&self) -> &M {
        &self.base
    }

    /// Returns the text of the form; `None` if it has that of the message.
    pub(super) fn text(&self) -> Option<TextPieces<'_>> {
        (self.frame)(&self.base)
    }

    fn build(&self) -> M {
        match self.text() {
            Some(text) => self.base.with_text(text.joined()).into(),
            None => self.base.clone(),
        }
    }
}
