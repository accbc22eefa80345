//! JSON of messages in the format of a provider, cached because requests to a model repeat the
//! messages of earlier requests.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Message;
use super::message::Inner;
use super::provider_json::{Cached, Joined};
use crate::json_size::raw_value;

impl Message {
    /// Returns the message as JSON in a provider's format, as `build` creates it; `None` if the
    /// format omits the message. `format` identifies the result of `build`. The JSON of the first
    /// format is cached, so the JSON of a large message is to be built without this method.
    pub fn wire_json(
        &self,
        format: u64,
        build: impl Fn(&Self) -> Option<Value>,
    ) -> Option<Arc<RawValue>> {
        let built = || build(self).and_then(|value| raw_value(&value).ok().map(Arc::from));
        let mut cached = self.0.wire.lock();
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

    /// Reports whether the message has been converted to a provider's format, in the form that
    /// models receive.
    pub fn was_sent(&self) -> bool {
        let is_converted = |message: &Self| message.0.wire.lock().is_some();
        let framed = self.0.framed.get().and_then(Option::as_ref);
        is_converted(self) || framed.is_some_and(is_converted)
    }

    /// Returns the JSON of these messages in a provider's format, separated by commas, if
    /// [`Message::join_wire_json`] joined it. Reads only the first message: each access to a message
    /// of a long conversation costs a cache miss.
    pub fn joined_wire_json(messages: &[Self], format: u64) -> Option<Bytes> {
        let (first, following) = messages.split_first()?;
        match &*first.0.wire.lock() {
            Some(Cached::First(joined))
                if joined.format == format && is_followed_by(joined, following) =>
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
        let cached = |message: &Self| match &*message.0.wire.lock() {
            Some(Cached::Own { format: own, json }) if *own == format => Some(json.clone()),
            _ => None,
        };
        let texts: Vec<_> = messages.iter().map(cached).collect::<Option<_>>()?;
        let texts: Vec<&str> = texts.iter().flatten().map(|json| json.get()).collect();
        let (first, following) = messages.split_first().filter(|_| !texts.is_empty())?;
        let json = Bytes::from(texts.join(","));
        let joined = Joined {
            format,
            following: following
                .iter()
                .map(|next| Arc::downgrade(&next.0))
                .collect(),
            json: json.clone(),
        };
        for message in following {
            *message.0.wire.lock() = Some(Cached::Following { format });
        }
        *first.0.wire.lock() = Some(Cached::First(Box::new(joined)));
        Some(json)
    }
}

fn is_followed_by(joined: &Joined<Inner>, messages: &[Message]) -> bool {
    let same = |(own, message): (&Weak<Inner>, &Message)| {
        std::ptr::eq(own.as_ptr(), Arc::as_ptr(&message.0))
    };
    joined.following.len() == messages.len() && joined.following.iter().zip(messages).all(same)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use serde_json::json;

    use super::*;

    #[test]
    fn json_of_first_provider_format_is_built_once() {
        let message = Message::human("hi");
        let builds = Cell::new(0);
        let sent = |format: u64| {
            let json = message.wire_json(format, |message| {
                builds.set(builds.get() + 1);
                (format < 3).then(|| json!([format, message.content.text()]))
            });
            json.map(|json| json.get().to_owned())
        };
        assert_eq!(sent(1).as_deref(), Some(r#"[1,"hi"]"#));
        assert_eq!(sent(1).as_deref(), Some(r#"[1,"hi"]"#));
        assert_eq!(builds.get(), 1);
        assert_eq!(sent(2).as_deref(), Some(r#"[2,"hi"]"#));
        assert_eq!(sent(3), None);
        assert_eq!(sent(1).as_deref(), Some(r#"[1,"hi"]"#));
        assert_eq!(builds.get(), 3);
    }

    fn send(messages: &[Message], format: u64) {
        for message in messages {
            message.wire_json(format, |message| {
                message.is_human().then(|| json!(message.content.text()))
            });
        }
    }

    fn joined(messages: &[Message], format: u64) -> Option<String> {
        let json = Message::joined_wire_json(messages, format)?;
        Some(String::from_utf8(json.to_vec()).unwrap())
    }

    #[test]
    fn joined_json_is_that_of_the_same_messages() {
        let [a, b, c] = ["a", "b", "c"].map(Message::human);
        let messages = [a.clone(), Message::ai("omitted"), b.clone()];
        assert_eq!(Message::join_wire_json(&messages, 1), None);
        assert_eq!(joined(&messages, 1), None);
        send(&messages, 1);
        let json = Message::join_wire_json(&messages, 1);
        assert_eq!(json, Message::joined_wire_json(&messages, 1));
        assert_eq!(joined(&messages, 1).as_deref(), Some(r#""a","b""#));
        assert!(messages.iter().all(Message::was_sent));
        let changed = [a.clone(), c, b.clone()];
        for (other, format) in [(&messages[..], 2), (&messages[..2], 1), (&changed, 1)] {
            assert_eq!(joined(other, format), None);
        }
        // A second format neither uses nor replaces what is cached.
        send(&messages, 2);
        assert_eq!(joined(&messages, 1).as_deref(), Some(r#""a","b""#));
        // The order that is sent now replaces the former one.
        send(&changed, 1);
        Message::join_wire_json(&changed, 1);
        assert_eq!(joined(&changed, 1).as_deref(), Some(r#""a","c","b""#));
        assert_eq!(joined(&messages, 1), None);
    }

    #[test]
    fn messages_joined_in_two_orders_are_freed() {
        let pair = ["a", "b"].map(Message::human);
        for messages in [pair.to_vec(), pair.iter().rev().cloned().collect()] {
            send(&messages, 1);
            Message::join_wire_json(&messages, 1);
        }
        let memory = pair.each_ref().map(|message| Arc::downgrade(&message.0));
        drop(pair);
        assert!(memory.iter().all(|message| message.upgrade().is_none()));
    }
}
