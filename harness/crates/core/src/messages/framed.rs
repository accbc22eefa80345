//! Form of a message that models receive.

use super::late_fields::Fields;
use super::message::Message;
use super::text_pieces::TextPieces;

/// Creates the text of a message's form that models receive; `None` if the message has no other
/// form.
pub type Frame = fn(&Message) -> Option<TextPieces<'_>>;

impl Message {
    /// Returns the message in the form that models receive, whose text `frame` creates.
    ///
    /// The form is created by the first call and cached, so that user input is not copied for each
    /// model request. The form of a large text or image would use the memory of another one, so it
    /// is created when its fields are read, and [`Message::framed_text`] serializes it without that.
    #[must_use]
    pub fn framed(&self, frame: Frame) -> Self {
        if self.is_large() {
            return Self::of_fields(self.0.traits, Fields::late(self.clone(), frame));
        }
        // A message that cached itself would never be freed.
        let framed = || frame(self).map(|text| self.with_text(text.joined()).into());
        let framed = self.0.framed.get_or_init(framed).clone();
        framed.unwrap_or_else(|| self.clone())
    }

    /// Returns a message whose fields are the same, except the content of a form for models. Reading
    /// them does not build the form.
    pub fn without_frame(&self) -> &Self {
        match &self.0.fields {
            Fields::Own(_) => self,
            Fields::Late(form) => form.base(),
        }
    }

    /// Returns the text of the form of a large message. `None` if the message is no such form, or if
    /// the form has the content of [`Message::without_frame`].
    pub fn framed_text(&self) -> Option<TextPieces<'_>> {
        match &self.0.fields {
            Fields::Own(_) => None,
            Fields::Late(form) => form.text(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::messages::Content;

    #[test]
    fn form_for_models_is_cached_unless_the_text_is_large() {
        let framed: Frame = |message| {
            let text = message.content.text_cow();
            Some(TextPieces::new(["> ".into(), text]))
        };
        let small = Message::human("hi");
        assert!(small.framed(framed).is_same(&small.framed(framed)));
        assert_eq!(small.framed(framed), Message::human("> hi"));
        let large = Message::human("x".repeat(2 << 20));
        assert!(!large.framed(framed).is_same(&large.framed(framed)));
        assert_eq!(large.framed(framed).content.text().len(), (2 << 20) + 2);
        assert_eq!(large.framed(|_| None), large);
        let image = json!({"type": "image_url", "image_url": {"url": "x".repeat(2 << 20)}});
        assert!(Message::human(Content::Blocks(vec![image])).is_large());
        assert!(!Message::human("x".repeat(1 << 18)).is_large());
    }

    #[test]
    fn text_of_a_large_form_is_read_without_being_retained() {
        let large = Message::human("x".repeat(2 << 20)).with(|body| body.id = Some("m".to_owned()));
        let form = large.framed(|_| Some("short".into()));
        assert!(form.is_human() && form.is_large() && form.without_frame().is_same(&large));
        assert_eq!(form.framed_text(), Some("short".into()));
        assert_eq!(large.framed_text(), None);
        assert!(!form.0.fields.is_built() && !form.was_sent() && !large.was_sent());
        assert_eq!(
            (form.content.text().as_str(), form.id.as_deref()),
            ("short", Some("m"))
        );
        assert!(form.0.fields.is_built());
        let changed = form.into_with(|body| body.id = None);
        assert_eq!(changed, Message::human("short"));
    }

    #[test]
    fn message_without_another_form_is_freed() {
        let message = Message::human("hi");
        assert!(message.framed(|_| None).is_same(&message));
        assert!(message.framed(|_| unreachable!()).is_same(&message));
        let memory = Arc::downgrade(&message.0);
        drop(message);
        assert!(memory.upgrade().is_none());
    }
}
