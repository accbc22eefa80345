//! Form of a message that models receive.

use std::borrow::Cow;

use super::message::{Inner, Message};
use super::text_pieces::{Frame, TextPieces};
use super::{Content, MessageBody};

impl Message {
    /// Returns the message in the form that models receive, whose text `frame` creates.
    ///
    /// The form shares the memory of the message. Its text is created by [`Message::framed_text`],
    /// and by the first read of its fields, which caches them for all forms of the message.
    #[must_use]
    pub fn framed(&self, frame: Frame) -> Self {
        Self {
            inner: self.inner.clone(),
            frame: Some(frame),
        }
    }

    /// Returns the fields of the message without its frame.
    pub fn without_frame(&self) -> &MessageBody {
        &self.inner.fields
    }

    /// Returns the text of the form for models. `None` if the message is no such form, or if the
    /// form has the content of [`Message::without_frame`].
    pub fn framed_text(&self) -> Option<TextPieces<'_>> {
        self.frame.and_then(|frame| frame(&self.inner.fields))
    }

    /// Returns the content. That of the form for models is created and not cached.
    pub fn sent_content(&self) -> Cow<'_, Content> {
        let own = &self.inner.fields.content;
        match self.framed_text() {
            Some(text) => Cow::Owned(own.with_text(text.joined())),
            None => Cow::Borrowed(own),
        }
    }

    /// Returns the message with the fields that [`Deref`](std::ops::Deref) returns.
    pub(super) fn own_or_form(&self) -> &Self {
        self.frame
            .and_then(|frame| self.inner.form(frame))
            .unwrap_or(self)
    }
}

impl Inner {
    /// Returns the form for models, built and cached at the first call; `None` if it has the fields
    /// of the message.
    fn form(&self, frame: Frame) -> Option<&Message> {
        // A message that cached itself would never be freed.
        let built = || frame(&self.fields).map(|text| self.fields.with_text(text.joined()).into());
        self.framed.get_or_init(built).as_ref()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    fn quoted(message: &MessageBody) -> Option<TextPieces<'_>> {
        let text = message.content.text_cow();
        Some(TextPieces::new(["> ".into(), text]))
    }

    #[test]
    fn form_for_models_shares_the_message_until_its_fields_are_read() {
        let message = Message::human("hi").with(|body| body.id = Some("m".to_owned()));
        let form = message.framed(quoted);
        assert!(form.is_human() && form.is_same(&message.framed(quoted)));
        assert!(!form.is_same(&message));
        assert_eq!(
            form.framed_text().map(|text| text.joined()).as_deref(),
            Some("> hi")
        );
        assert_eq!(form.without_frame(), &*message);
        assert_eq!(message.framed_text(), None);
        assert!(message.inner.framed.get().is_none());
        assert_eq!(
            (form.content.text().as_str(), form.id.as_deref()),
            ("> hi", Some("m"))
        );
        assert!(message.inner.framed.get().is_some());
        assert!(form.json().get().contains("> hi") && !message.json().get().contains("> hi"));
        assert_eq!(message.content.text(), "hi");
        let changed = form.into_with(|body| body.id = None);
        assert_eq!(changed, Message::human("> hi"));
    }

    #[test]
    fn content_of_a_form_is_not_cached() {
        let image = json!({"type": "image_url", "image_url": {"url": "x".repeat(2 << 20)}});
        let large = Message::human(Content::Blocks(vec![json!("hi"), image]));
        let form = large.framed(quoted);
        assert!(form.is_large() && !Message::human("x".repeat(1 << 18)).is_large());
        assert_eq!(form.sent_content().text(), "> hi");
        assert!(large.inner.framed.get().is_none());
        for message in [
            large.framed(|_| None),
            large.clone(),
            Message::human("hi").framed(quoted),
        ] {
            assert_eq!(*message.sent_content(), message.content);
        }
    }

    #[test]
    fn message_without_another_form_is_freed() {
        let message = Message::human("hi");
        let form = message.framed(|_| None);
        assert_eq!((&form, form.json().get()), (&message, message.json().get()));
        let memory = Arc::downgrade(&message.inner);
        drop((message, form));
        assert!(memory.upgrade().is_none());
    }
}
