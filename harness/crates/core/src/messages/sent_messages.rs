//! JSON of messages in the format of a provider, cached because requests to a model repeat the
//! messages of earlier requests.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use serde_json::value::RawValue;

use super::Message;
use super::message::Inner;
use super::provider_json::{Cached, Joined};

impl Message {
    /// Returns the message as JSON in a provider's format, as `build` creates it; `None` if the
    /// format omits the message. `format` identifies the result of `build`. The JSON of the first
    /// format is cached, so the JSON of a large message is to be built without this method.
    pub fn wire_json(
        &self,
        format: u64,
        build: impl Fn(&Self) -> Option<Box<RawValue>>,
    ) -> Option<Arc<RawValue>> {
        let format = self.own_format(format);
        let built = || build(self).map(Arc::from);
        let mut cached = self.inner.wire.lock();
        match &*cached {
            Some(Cached::Own { format: own, json }) if *own == format => json.clone(),
            Some(other) if other.format() != format => built(),
            _ => {
                let json = built();
                let own = json.clone();
                *cached = Some(Cached::Own { format, json: own });
                json
            }
        }
    }

    /// Reports whether the message has been converted to a provider's format.
    pub fn was_sent(&self) -> bool {
        self.inner.wire.lock().is_some()
    }

    /// Returns the identity of a provider's format of this form of the message: a message and its form
    /// for models are sent differently.
    fn own_format(&self, format: u64) -> u64 {
        match self.frame {
            None => format,
            Some(_) => !format,
        }
    }

    /// Returns the JSON of these messages in a provider's format, separated by commas, if
    /// [`Message::join_wire_json`] joined it. Reads only the first message: each access to a message
    /// of a long conversation costs a cache miss.
    pub fn joined_wire_json(messages: &[Self], format: u64) -> Option<Bytes> {
        let (first, following) = messages.split_first()?;
        match &*first.inner.wire.lock() {
            Some(Cached::First(joined))
                if joined.format == first.own_format(format)
                    && is_followed_by(joined, following) =>
            {
                Some(joined.json.clone())
            }
            _ => None,
        }
    }

    /// Joins the cached JSON of these messages and returns it, so that requests with the same messages
    /// in the same order send it as one text. Returns `None` if the JSON of one is not cached, or if
    /// the format omits all.
    pub fn join_wire_json(messages: &[Self], format: u64) -> Option<Bytes> {
        let cached = |message: &Self| match &*message.inner.wire.lock() {
            Some(Cached::Own { format: own, json }) if *own == message.own_format(format) => {
                Some(json.clone())
            }
            _ => None,
        };
        let texts: Vec<_> = messages.iter().map(cached).collect::<Option<_>>()?;
        let texts: Vec<&str> = texts.iter().flatten().map(|json| json.get()).collect();
        let (first, following) = messages.split_first().filter(|_| !texts.is_empty())?;
        let json = Bytes::from(texts.join(","));
        let joined = Joined {
            format: first.own_format(format),
            following: following
                .iter()
                .map(|next| (Arc::downgrade(&next.inner), next.frame.is_some()))
                .collect(),
            json: json.clone(),
        };
        for message in following {
            let format = message.own_format(format);
            *message.inner.wire.lock() = Some(Cached::Following { format });
        }
        *first.inner.wire.lock() = Some(Cached::First(Box::new(joined)));
        Some(json)
    }
}

fn is_followed_by(joined: &Joined<Inner>, messages: &[Message]) -> bool {
    let same = |((own, is_framed), message): (&(Weak<Inner>, bool), &Message)| {
        let is_own = std::ptr::eq(own.as_ptr(), Arc::as_ptr(&message.inner));
        is_own && *is_framed == message.frame.is_some()
    };
    joined.following.len() == messages.len() && joined.following.iter().zip(messages).all(same)
}

#[cfg(test)]
#[path = "sent_messages_tests.rs"]
mod tests;
